// SPDX-License-Identifier: MIT OR Apache-2.0
//! A UDP socket's datagrams that Linux has dropped because its buffer was full: the last column of `/proc/net/udp`.

use std::fs;

const TABLE: &str = "/proc/net/udp";

/// Datagrams that were dropped at the socket of this port; `None` if Linux does not report it.
pub(super) fn of_port(port: u16) -> Option<u64> {
    in_table(&fs::read_to_string(TABLE).ok()?, port)
}

fn in_table(table: &str, port: u16) -> Option<u64> {
    let is_of_port = |line: &&str| {
        let address = line.split_whitespace().nth(1).and_then(|local| local.rsplit_once(':'));
        address.is_some_and(|(_, number)| u16::from_str_radix(number, 16) == Ok(port))
    };
    table.lines().skip(1).find(is_of_port)?.split_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drops_of_a_port_are_its_lines_last_column() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when ref pointer drops\n \
                     17: 0100007F:B6C5 00000000:0000 07 00000000:00000000 00:00000000 2 0000000000000000 5\n \
                     18: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 2 0000000000000000 0\n";
        assert_eq!([0xb6c5, 53, 54].map(|port| in_table(table, port)), [Some(5), Some(0), None]);
    }

    #[test]
    fn a_table_of_another_form_has_no_count() {
        assert_eq!(["", "a\nb", "a\n1: x:0035 y"].map(|table| in_table(table, 53)), [None; 3]);
    }
}

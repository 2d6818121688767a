// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton disk`: the disks of guests with their storage in other guests.

use anyhow::Result;
use comfy_table::{CellAlignment, Table, presets};
use wire::DiskInfo;

use super::{DONE, connect, print_lines};
use crate::args::{DiskCommand, Target};
use crate::size::Size;

/// The columns with numbers.
const NUMBERS: [usize; 7] = [4, 5, 6, 7, 8, 9, 10];

pub(super) fn run(target: &Target, command: &DiskCommand) -> Result<u8> {
    let DiskCommand::List(format) = command;
    let disks = connect(target)?.disks()?;
    match format.json {
        true => print_lines(&disks)?,
        false => println!("{}", table(&disks)),
    }
    Ok(DONE)
}

fn table(disks: &[DiskInfo]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header([
        "GUEST", "DISK", "SERVER", "STATE", "SIZE", "READS", "BYTES", "WRITES", "BYTES", "OTHERS", "FAILED",
    ]);
    for disk in disks {
        table.add_row([
            disk.guest.clone(),
            disk.number.to_string(),
            server(disk),
            state(disk).to_owned(),
            disk.bytes.map_or("-".to_owned(), |bytes| Size { bytes }.to_string()),
            disk.reads.requests.to_string(),
            disk.reads.bytes.to_string(),
            disk.writes.requests.to_string(),
            disk.writes.bytes.to_string(),
            disk.others.to_string(),
            disk.failures.to_string(),
        ]);
    }
    for column in NUMBERS {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Formats the guest with the server, and the export.
fn server(disk: &DiskInfo) -> String {
    if disk.export.is_empty() { disk.server.clone() } else { format!("{}:{}", disk.server, disk.export) }
}

fn state(disk: &DiskInfo) -> &'static str {
    match (disk.is_connected, disk.in_flight) {
        (true, _) => "connected",
        (false, 0) => "no server",
        (false, _) => "waits",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::disk;

    fn row(disk: DiskInfo) -> Vec<String> {
        let text = table(&[disk]).to_string();
        text.lines()
            .nth(1)
            .expect("a row")
            .split("  ")
            .filter(|word| !word.is_empty())
            .map(str::trim)
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn a_disk_is_a_row() {
        let expected = ["web", "1", "storage:web-root", "connected", "1 MiB", "6", "3072", "7", "3584", "8", "9"];
        assert_eq!(row(disk()), expected);
    }

    #[test]
    fn a_disk_without_its_server_waits_for_it() {
        let away = DiskInfo { is_connected: false, bytes: None, export: String::new(), ..disk() };
        assert_eq!(row(away.clone())[2..5], ["storage", "waits", "-"]);
        assert_eq!(row(DiskInfo { in_flight: 0, ..away })[3], "no server");
    }
}

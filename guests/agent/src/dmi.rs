// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine's SMBIOS tables as the kernel shows them.

use crate::log;
use std::fs;
use std::path::Path;
use std::thread::{self, sleep};
use std::time::Duration;

const IDENTITY: &str = "/sys/class/dmi/id";
const OEM_STRINGS: &str = "/sys/firmware/dmi/entries/11-0/raw";
const FIELDS: [&str; 4] = ["sys_vendor", "product_name", "product_serial", "product_uuid"];

/// Prints them at every period, for ever, beside the tasks that follow.
pub fn start(period: Duration) {
    thread::spawn(move || {
        for number in 0_u64.. {
            log!("dmi {number} {}", identity(Path::new(IDENTITY)));
            match fs::read(OEM_STRINGS) {
                Ok(structure) => log!("dmi {number} oem={:?}", strings(&structure)),
                Err(error) => log!("dmi: WRONG: {OEM_STRINGS}: {error}"),
            }
            sleep(period);
        }
    });
}

fn identity(folder: &Path) -> String {
    let field = |name: &str| {
        let text = fs::read_to_string(folder.join(name)).unwrap_or_else(|error| format!("({error})"));
        format!("{name}={}", text.trim_end())
    };
    FIELDS.map(field).join(" ")
}

/// The strings behind a structure (DSP0134, section 6.1.3): each ends with a zero.
fn strings(structure: &[u8]) -> Vec<String> {
    let formatted = structure.get(1).map_or(structure.len(), |bytes| usize::from(*bytes));
    let rest = structure.get(formatted..).unwrap_or_default();
    let texts = rest.split(|byte| *byte == 0).take_while(|text| !text.is_empty());
    texts.map(|text| String::from_utf8_lossy(text).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_follow_the_formatted_part() {
        assert_eq!(strings(b"\x0b\x05\x03\x00\x02a=b\0c d\0\0"), ["a=b", "c d"]);
        assert!(strings(b"\x0b\x05\x03\x00\x00\0\0").is_empty());
        assert!(strings(b"\x0b").is_empty() && strings(b"\x0b\xffxy").is_empty());
    }

    #[test]
    fn a_field_that_cannot_be_read_is_named() {
        let text = identity(Path::new("/nowhere"));
        assert!(text.starts_with("sys_vendor=(") && text.contains(" product_uuid=("), "{text}");
    }
}

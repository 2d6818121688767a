// SPDX-License-Identifier: MIT OR Apache-2.0
//! SMBIOS tables: which machine this is, for programs in the guest (DSP0134 3.0).
//!
//! ```text
//! entry point "_SM3_" ─► firmware 0 · system 1 · enclosure 3 · OEM strings 11 · boot status 32 · end 127
//! ```
//!
//! The tables are bytes for one place, [`layout::SMBIOS_TABLES`], in the 64 KiB that kernels scan for the entry point
//! where no firmware names it (section 5.2.2); they never change while the guest runs. Cloud-init takes its data source
//! from the serial number, systemd its credentials from the OEM strings.

use alloc::vec::Vec;
use core::fmt;

use crate::platform::layout;

#[cfg(test)]
mod tests;

const ENTRY_POINT_BYTES: u8 = 24;
/// Where the structures begin behind the entry point.
const STRUCTURES_OFFSET: usize = 32;
const ENTRY_POINT_CHECKSUM: usize = 5;
/// Version of the specification; the last number is the document's revision.
const VERSION: [u8; 3] = [3, 0, 0];
/// The OEM strings that one structure counts.
const MOST_STRINGS: usize = u8::MAX as usize;

const MANUFACTURER: &str = "Baton";
const PRODUCT: &str = "Virtual Machine";
const RELEASE: &str = env!("CARGO_PKG_VERSION");
/// The day from which on the tables are as they are: kernels distrust machines whose firmware is of another century.
const RELEASE_DATE: &str = "11/24/2026";

/// The data of one guest that the tables state.
#[derive(Clone, Copy, Debug)]
pub struct System<'a> {
    /// Its UUID, its bytes in the order of the text form.
    pub uuid: [u8; 16],
    /// Its serial number.
    pub serial: &'a str,
    /// Its OEM strings.
    pub oem_strings: &'a [&'a str],
}

/// No tables can be made of the data that they are to state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmbiosError {
    /// A string is empty: a zero byte ends a string, and two end a structure.
    Empty,
    /// A string holds a byte that is not printable ASCII.
    NotAscii,
    /// There are more OEM strings than one structure counts.
    TooMany,
    /// The tables are larger than their place.
    TooLarge,
}

impl fmt::Display for SmbiosError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "a string of its SMBIOS tables is empty: give it a character, or leave it out",
            Self::NotAscii => "a string of its SMBIOS tables is not printable ASCII: use no other characters",
            Self::TooMany => "its SMBIOS tables have more than 255 OEM strings: leave some out",
            Self::TooLarge => "its SMBIOS tables have more than 16 KiB: shorten its OEM strings",
        })
    }
}

impl core::error::Error for SmbiosError {}

/// The tables' bytes, to be written to [`layout::SMBIOS_TABLES`]; the entry point comes first.
pub fn build(system: &System<'_>) -> Result<Vec<u8>, SmbiosError> {
    check(system)?;
    let mut tables = Tables { bytes: Vec::new(), handles: 0 };
    tables.bytes.resize(STRUCTURES_OFFSET, 0);
    tables.add(0, &FIRMWARE, &[MANUFACTURER, RELEASE, RELEASE_DATE]);
    tables.add(1, &system_body(system.uuid), &[MANUFACTURER, PRODUCT, RELEASE, system.serial]);
    tables.add(3, &ENCLOSURE, &[MANUFACTURER]);
    // Its number has been checked.
    tables.add(11, &[system.oem_strings.len() as u8], system.oem_strings);
    tables.add(32, &NO_BOOT_ERROR, &[]);
    tables.add(127, &[], &[]);
    tables.finish()
}

fn check(system: &System<'_>) -> Result<(), SmbiosError> {
    for text in system.oem_strings.iter().chain([&system.serial]) {
        if text.is_empty() {
            return Err(SmbiosError::Empty);
        }
        if !text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            return Err(SmbiosError::NotAscii);
        }
    }
    if system.oem_strings.len() > MOST_STRINGS { Err(SmbiosError::TooMany) } else { Ok(()) }
}

/// Firmware (section 7.1): manufacturer, version; no segment in memory; date; no size. It has no characteristics but
/// ACPI, and that it describes a virtual machine; it has no numbers of releases.
const FIRMWARE: [u8; 20] =
    [1, 2, 0, 0, 3, 0, 1 << 3, 0, 0, 0, 0, 0, 0, 0, 1 << 0, 1 << 4, u8::MAX, u8::MAX, u8::MAX, u8::MAX];

/// System (section 7.2): manufacturer, product, version, serial number, UUID; woken by the power switch; no SKU number
/// and no family.
fn system_body(uuid: [u8; 16]) -> [u8; 23] {
    const POWER_SWITCH: u8 = 6;
    let mut body = [0; 23];
    body[..4].copy_from_slice(&[1, 2, 3, 4]);
    body[4..20].copy_from_slice(&uuid);
    // The first three fields are little endian (section 7.2.1).
    for field in [4..8, 8..10, 10..12] {
        body[field].reverse();
    }
    body[20] = POWER_SWITCH;
    body
}

/// Enclosure (section 7.4): manufacturer; of another type than real ones; states are safe (3), security is unknown (2);
/// no height, power cords or elements.
const ENCLOSURE: [u8; 18] = [1, 1, 0, 0, 0, 3, 3, 3, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Boot status (section 7.33): six reserved bytes; no error.
const NO_BOOT_ERROR: [u8; 7] = [0; 7];

/// The entry point, and structures one after the other.
struct Tables {
    bytes: Vec<u8>,
    handles: u16,
}

impl Tables {
    /// Adds a structure: its type, what follows its handle, and its strings, which it names by numbers from 1.
    fn add(&mut self, kind: u8, body: &[u8], strings: &[&str]) {
        const HEADER_BYTES: u8 = 4;
        let [low, high] = self.handles.to_le_bytes();
        self.bytes.extend_from_slice(&[kind, HEADER_BYTES + body.len() as u8, low, high]);
        self.bytes.extend_from_slice(body);
        self.handles += 1;
        for text in strings {
            self.bytes.extend_from_slice(text.as_bytes());
            self.bytes.push(0);
        }
        // Two zeroes end a structure: the last string's own and one more, or two where there are no strings.
        self.bytes.resize(self.bytes.len() + if strings.is_empty() { 2 } else { 1 }, 0);
    }

    fn finish(mut self) -> Result<Vec<u8>, SmbiosError> {
        let bytes = self.bytes.len();
        const { assert!(layout::SMBIOS_BYTES == 16 << 10, "the error states it") };
        if bytes > layout::SMBIOS_BYTES {
            return Err(SmbiosError::TooLarge);
        }
        let structures = (bytes - STRUCTURES_OFFSET) as u32;
        let address = layout::SMBIOS_TABLES.0 + STRUCTURES_OFFSET as u64;
        let entry = &mut self.bytes[..usize::from(ENTRY_POINT_BYTES)];
        entry[..5].copy_from_slice(b"_SM3_");
        entry[6] = ENTRY_POINT_BYTES;
        entry[7..10].copy_from_slice(&VERSION);
        // Revision of the entry point.
        entry[10] = 1;
        entry[12..16].copy_from_slice(&structures.to_le_bytes());
        entry[16..24].copy_from_slice(&address.to_le_bytes());
        entry[ENTRY_POINT_CHECKSUM] = entry.iter().fold(0, |sum: u8, byte| sum.wrapping_sub(*byte));
        Ok(self.bytes)
    }
}

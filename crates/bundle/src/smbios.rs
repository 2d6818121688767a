// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manifest's entry for a guest's SMBIOS tables.

use alloc::string::{String, ToString};
use core::iter;

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::uuid::Uuid;

/// The keys that a guest's SMBIOS tables have from its configuration.
///
/// They are one text: the UUID, the serial number, each empty where none is stated, and the OEM strings, with zeroes
/// between them; an empty text where no key is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmbiosConfig(pub(crate) String);

const SEPARATOR: char = '\0';

impl SmbiosConfig {
    /// Returns the keys with these values. No text holds a zero.
    pub fn new<'a>(
        uuid: Option<Uuid>,
        serial: Option<&'a str>,
        oem_strings: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let mut oem_strings = oem_strings.into_iter().peekable();
        if uuid.is_none() && serial.is_none() && oem_strings.peek().is_none() {
            return Self::default();
        }
        let mut text = uuid.map(|uuid| uuid.to_string()).unwrap_or_default();
        for part in iter::once(serial.unwrap_or_default()).chain(oem_strings) {
            text.push(SEPARATOR);
            text.push_str(part);
        }
        Self(text)
    }

    /// Returns whether any key is stated.
    pub fn is_stated(&self) -> bool {
        !self.0.is_empty()
    }

    /// Returns the system's UUID; `None`: the one derived from the guest's name.
    pub fn uuid(&self) -> Option<Uuid> {
        self.part(0)?.parse().ok()
    }

    /// Returns the UUID of a guest with this name.
    pub fn uuid_of(&self, guest: &str) -> Uuid {
        self.uuid().unwrap_or_else(|| Uuid::derived(guest))
    }

    /// Returns the system's serial number; `None`: the UUID as text.
    pub fn serial(&self) -> Option<&str> {
        self.part(1)
    }

    /// Returns the OEM strings, in this order.
    pub fn oem_strings(&self) -> impl Iterator<Item = &str> {
        self.0.split(SEPARATOR).skip(2)
    }

    fn part(&self, number: usize) -> Option<&str> {
        self.0.split(SEPARATOR).nth(number).filter(|part| !part.is_empty())
    }

    /// Checks what is stated.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.part(0).is_some() && self.uuid().is_none() {
            return Err("has a bad UUID: 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12 are possible");
        }
        if !self.serial().is_none_or(|serial| is_text(serial, limits::SERIAL_BYTES)) {
            return Err("has a bad serial number: 1 to 255 printable ASCII characters are possible");
        }
        let (mut count, mut bytes) = (0, 0);
        for text in self.oem_strings() {
            if !is_text(text, limits::OEM_STRING_BYTES) {
                return Err("has a bad OEM string: 1 to 4095 printable ASCII characters are possible");
            }
            (count, bytes) = (count + 1, bytes + text.len());
        }
        if count > limits::OEM_STRINGS || bytes > limits::OEM_STRINGS_BYTES {
            return Err("has too many OEM strings: 64 of 8192 bytes together are possible");
        }
        Ok(())
    }
}

/// Returns whether a text can be a string of SMBIOS (DSP0134 3.0, section 6.1.3): a zero ends it, so none is empty.
pub fn is_text(text: &str, most_bytes: usize) -> bool {
    (1..=most_bytes).contains(&text.len()) && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

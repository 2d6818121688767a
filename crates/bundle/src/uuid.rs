// SPDX-License-Identifier: MIT OR Apache-2.0
//! UUIDs (RFC 9562).

use core::fmt;
use core::str::FromStr;

/// Characters of the text form, hyphens included.
const TEXT_BYTES: usize = 36;
/// Positions of its hyphens.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// A UUID, its bytes in the order of its text form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Uuid([u8; 16]);

/// A text is no UUID of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAUuid {
    /// It is not 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12.
    Malformed,
    /// All bits are equal, by which SMBIOS states that there is none (DSP0134 3.0, section 7.2.1).
    Absent,
}

impl Uuid {
    /// Returns the UUID of a guest that has none in the configuration. It depends on nothing but the name, so that it
    /// stays the same over restarts. Its version is 8, which leaves the other bits to the maker (section 5.8).
    pub fn derived(guest: &str) -> Self {
        // FNV-1a, 128 bits.
        const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        const PRIME: u128 = 0x100_0000_0000_0000_0000_013b;
        let hash = guest.bytes().fold(OFFSET, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
        let mut bytes = hash.to_be_bytes();
        bytes[6] = bytes[6] & 0x0f | 0x80;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Self(bytes)
    }

    /// Returns its bytes.
    pub const fn bytes(self) -> [u8; 16] {
        self.0
    }
}

impl FromStr for Uuid {
    type Err = NotAUuid;

    fn from_str(text: &str) -> Result<Self, NotAUuid> {
        let is_hyphen = |(at, byte): (usize, u8)| HYPHENS.contains(&at) == (byte == b'-');
        if text.len() != TEXT_BYTES || !text.bytes().enumerate().all(is_hyphen) {
            return Err(NotAUuid::Malformed);
        }
        let mut bytes = [0; 16];
        let mut digits = text.chars().filter(|digit| *digit != '-').map(|digit| digit.to_digit(16));
        for byte in &mut bytes {
            let mut digit = || digits.next().flatten().ok_or(NotAUuid::Malformed);
            *byte = (digit()? << 4 | digit()?) as u8;
        }
        if bytes == [0; 16] || bytes == [0xff; 16] { Err(NotAUuid::Absent) } else { Ok(Self(bytes)) }
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let hyphen = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{hyphen}{byte:02x}")?;
        }
        Ok(())
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! MAC addresses.

use core::fmt;
use core::str::FromStr;

/// The bit of the first byte that marks a group: multicast, and broadcast among it.
const GROUP: u8 = 1;
/// The bit of the first byte that marks an address that no vendor has assigned.
const LOCAL: u8 = 2;
/// The first five bytes of the addresses that bridges do not forward.
const RESERVED: [u8; 5] = [0x01, 0x80, 0xc2, 0x00, 0x00];
/// The last byte of the last of these.
const LAST_RESERVED: u8 = 0x0f;

/// A MAC address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac(pub [u8; 6]);

/// A text is no MAC address of one station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAMac {
    /// It is not six bytes in hexadecimal with colons between them.
    Malformed,
    /// It is a group's address, or zero.
    NoStation,
}

impl Mac {
    /// All stations.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// The address of a guest's network device that has none in the configuration. It is administered locally and
    /// depends on nothing but its arguments, so that it stays the same over restarts.
    pub fn derived(guest: &str, number: u32) -> Self {
        const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x100_0000_01b3;
        // FNV-1a, 64 bits. A name holds no zero.
        let bytes = guest.bytes().chain([0]).chain(number.to_le_bytes());
        let hash = bytes.fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
        let [a, b, c, d, e, f, g, h] = hash.to_le_bytes();
        Self([a & !GROUP | LOCAL, b, c, d ^ g, e ^ h, f])
    }

    /// Returns whether it is the address of one station.
    pub fn is_station(self) -> bool {
        self.0[0] & GROUP == 0 && self.0 != [0; 6]
    }

    /// Returns whether it is a group's address.
    pub fn is_group(self) -> bool {
        self.0[0] & GROUP != 0
    }

    /// Returns whether bridges do not forward frames to it (IEEE 802.1Q-2018, table 8-1).
    pub fn is_reserved(self) -> bool {
        self.0[..5] == RESERVED && self.0[5] <= LAST_RESERVED
    }

    /// The address as a number of 48 bits.
    pub(crate) fn bits(self) -> u64 {
        self.0.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
    }
}

impl FromStr for Mac {
    type Err = NotAMac;

    fn from_str(text: &str) -> Result<Self, NotAMac> {
        let mut bytes = [0; 6];
        let mut pairs = text.split(':');
        for byte in &mut bytes {
            let pair =
                pairs.next().filter(|pair| pair.len() == 2 && pair.bytes().all(|digit| digit.is_ascii_hexdigit()));
            *byte = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()).ok_or(NotAMac::Malformed)?;
        }
        match (pairs.next(), Self(bytes)) {
            (Some(_), _) => Err(NotAMac::Malformed),
            (None, mac) if mac.is_station() => Ok(mac),
            (None, _) => Err(NotAMac::NoStation),
        }
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, last] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{last:02x}")
    }
}

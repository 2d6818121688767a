// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sizes as people read them.

use core::fmt;

/// 1024 bytes.
pub const KIB: u64 = 1 << 10;
/// 1024 KiB.
pub const MIB: u64 = 1 << 20;
/// 1024 MiB.
pub const GIB: u64 = 1 << 30;

/// A number of bytes that prints in the largest unit that fits: `640 KiB`, `1.5 GiB`, `4095 bytes`.
///
/// At most one decimal, rounded down: a size never prints larger than it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteSize(pub u64);

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            1 => return f.write_str("1 byte"),
            0..KIB => return write!(f, "{} bytes", self.0),
            KIB..MIB => (KIB, "KiB"),
            MIB..GIB => (MIB, "MiB"),
            GIB.. => (GIB, "GiB"),
        };
        let tenths = self.0 % unit * 10 / unit;
        match tenths {
            0 => write!(f, "{} {name}", self.0 / unit),
            _ => write!(f, "{}.{tenths} {name}", self.0 / unit),
        }
    }
}

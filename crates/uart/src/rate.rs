// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rate of a line.

/// The fastest a 16550 on a PC's clock of 1.8432 MHz can be, in bits per second.
pub const FASTEST_BAUD: u32 = 115_200;

/// Start bit, eight data bits, stop bit.
const BITS_PER_BYTE: u64 = 10;

/// A line's speed, as a UART takes it: the clock's divisor (PC16550D data sheet, section 8.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    divisor: u16,
}

impl Rate {
    /// 115,200 baud.
    pub const FASTEST: Self = Self { divisor: 1 };

    /// So many bits per second; `None` where that does not divide [`FASTEST_BAUD`], or is too slow for the divisor.
    pub const fn from_baud(baud: u32) -> Option<Self> {
        if baud == 0 || !FASTEST_BAUD.is_multiple_of(baud) {
            return None;
        }
        match FASTEST_BAUD / baud {
            divisor @ 1..=0xffff => Some(Self { divisor: divisor as u16 }),
            _ => None,
        }
    }

    /// Bits per second.
    pub const fn baud(self) -> u32 {
        FASTEST_BAUD / self.divisor as u32
    }

    /// Returns the value of the divisor latch.
    pub const fn divisor(self) -> u16 {
        self.divisor
    }

    /// Nanoseconds that a byte takes on the line, 8N1.
    pub const fn byte_ns(self) -> u64 {
        BITS_PER_BYTE * 1_000_000_000 / self.baud() as u64
    }
}

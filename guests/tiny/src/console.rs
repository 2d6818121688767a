// SPDX-License-Identifier: MIT OR Apache-2.0
//! The console: COM1, by polling (PC16550D data sheet, section 8).

use crate::cpu::{inb, outb};
use core::fmt;

/// COM1's first port.
pub const COM1: u16 = 0x3f8;
/// The line status register's port.
pub const LINE_STATUS: u16 = COM1 + 5;
const TRANSMITTER_HOLDING_REGISTER_EMPTY: u8 = 1 << 5;
/// Polls of the status before a byte is sent all the same: a console that is stuck must not stop the guest.
const PATIENCE: u32 = 100_000;

/// Console that `print!` writes to.
pub struct Console;

impl fmt::Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(send);
        Ok(())
    }
}

/// Sends a byte.
pub fn send(byte: u8) {
    let _ = (0..PATIENCE).find(|_| inb(LINE_STATUS) & TRANSMITTER_HOLDING_REGISTER_EMPTY != 0);
    outb(COM1, byte);
}

/// Sets the registers as a console wants them, whatever was written to them before: 115,200 baud, 8 bits, FIFO on.
pub fn reset() {
    for (register, value) in [(3, 0x80), (0, 1), (1, 0), (3, 0x03), (1, 0), (2, 0x07), (4, 0x03)] {
        outb(COM1 + register, value);
    }
}

/// Prints on the console.
#[macro_export]
macro_rules! print {
    ($($words:tt)*) => {{
        use core::fmt::Write as _;
        let _ = write!($crate::console::Console, $($words)*);
    }};
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A UART with a wire behind it: real baud timing, a FIFO, port accesses that take time, interrupts that come late.
//!
//! [`Line`] is the UART as `uart`'s code sees it; every access moves the model's clock, and bytes leave when their time
//! on the wire is over. [`print()`] is a CPU that prints a log through it in one of three [`Way`]s, while a tick
//! is to be served:
//!
//! ```text
//! lines ──► Uart::offer / Uart::send ──► Line ──► what came out at the other end
//!                   ▲                      │
//!     tick ──► CPU ◄── interrupt ────┘
//! ```
//!
//! It leaves out noise on the wire, flow control, what other traffic on the bus adds to an access.

mod line;
mod print;
mod setup;
#[cfg(test)]
mod tests;

pub use line::Line;
pub use print::{Outcome, Way, print};
pub use setup::Setup;

/// Returns the log of `disks` disks that appear, six lines each, as in the storm of the self-test: 600 of them log
/// 400 kB.
pub fn storm(disks: usize) -> Vec<String> {
    const WHAT: [&str; 6] = [
        "2097152 512-byte logical blocks: 1 GiB",
        "write protect is off; mode sense: 73 00 10 08",
        "write cache enabled, read cache enabled, DPO and FUA",
        "optimal transfer size 524288 bytes, preferred 512",
        "no partition table was found; the whole disk is used",
        "attached as a disk, generic node sg of the same number",
    ];
    let line = |number: usize| {
        let disk = number / 6;
        let (host, unit, what) = (disk / 16, disk % 16, WHAT[number % 6]);
        format!("[    2.840807] cpu1 info  storm: storm {number:04}: sd {host}:0:{unit}:0: [sd{disk}] {what}.\r\n")
    };
    (0..disks * 6).map(line).collect()
}

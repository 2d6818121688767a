// SPDX-License-Identifier: MIT OR Apache-2.0
//! A 16550 or compatible UART: probed, set up, and fed byte by byte or by the FIFO.
//!
//! A byte takes 87 µs on a line of 115,200 baud, and a port access 1.7 µs. A CPU that waits for each byte does nothing
//! else; a CPU that fills the FIFO of 16 reads the status once per 1.4 ms, and needs 17 accesses for 16 bytes instead
//! of 32.
//!
//! ```text
//! probe ──► Found { depth, is_paced }      presence, depth of its FIFO, whether it keeps to the wire's time
//!             │
//!           Uart ── offer ──► poll ──► burst      without waiting: one fill at most
//!             └──── send ───► offer, wait, …      bounded polling: early boot, the end of the host
//! ```
//!
//! Both [`Policy`]s share this path; they differ in how many bytes may follow a read of the status. After a read that
//! found the transmitter empty, as many bytes may be written as the FIFO holds, in however many calls ([`Uart::offer`]
//! remembers the rest): lines that end in the middle of a FIFO cost no further read. On a UART that keeps to the wire's
//! time, the status is not read before the FIFO can be empty, so that slow status reads are few.
//!
//! The contents of the registers are untrusted input: every wait is bounded by a multiple of the wire's own time. A
//! UART that makes no progress for longer is dropped, counted, and rarely checked again.
//!
//! The registers: PC16550D data sheet (National Semiconductor, June 1995), section 8; TL16C750 data sheet (Texas
//! Instruments) for the FIFO of 64 bytes.
#![no_std]

#[cfg(test)]
extern crate std;

mod hardware;
mod health;
mod policy;
mod probe;
mod rate;
mod register;
#[cfg(test)]
mod tests;
mod transmit;
mod wait;

pub use hardware::Hardware;
pub use policy::{Counters, Patience, Policy};
pub use probe::{Absent, FifoDepth, Found, Peer};
pub use rate::{FASTEST_BAUD, Rate};
pub use register::{FifoControl, Identification, Interrupts, LineControl, LineStatus, ModemControl, Register};
pub use transmit::Uart;

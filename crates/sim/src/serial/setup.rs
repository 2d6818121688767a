// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties of a modelled UART.

use core::ops::RangeInclusive;

use uart::Rate;

/// A UART and its way to the CPU. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Size of its transmitter's FIFO; 1 is a holding register.
    pub depth: usize,
    /// Size that its identification claims: a FIFO of 16, of 64, or none.
    pub claims: usize,
    /// Its line's speed.
    pub rate: Rate,
    /// Duration of a port access in ns.
    pub access_ns: u64,
    /// Duration of a read of the line status in ns.
    pub status_ns: RangeInclusive<u64>,
    /// From the cause of an interrupt to its handler.
    pub latency_ns: RangeInclusive<u64>,
    /// Cost in ns of entering and leaving the handler.
    pub handler_ns: u64,
    /// It takes no byte off its wire from this moment on.
    pub dies_at_ns: Option<u64>,
    /// Seed of its random numbers.
    pub seed: u64,
}

impl Setup {
    /// Returns a 16550A on the source's machine: 1.7 µs an access, as its function tracer shows for reads and writes
    /// alike. How late an interrupt is, and what its handler costs, is assumed: a few microseconds, and one.
    pub fn good() -> Self {
        Self {
            depth: 16,
            claims: 16,
            rate: Rate::FASTEST,
            access_ns: 1_700,
            status_ns: 1_700..=1_700,
            latency_ns: 2_000..=5_000,
            handler_ns: 1_000,
            dies_at_ns: None,
            seed: 1,
        }
    }

    /// Returns the same with the source's odd status reads. It saw 10 to 13 µs now and then; here every one takes that
    /// long.
    pub fn slow() -> Self {
        Self { status_ns: 10_000..=13_000, ..Self::good() }
    }

    /// Returns a 16450: no FIFO.
    pub fn without_fifo() -> Self {
        Self { depth: 1, claims: 1, ..Self::good() }
    }

    /// Returns one that stops in the middle.
    pub fn dying() -> Self {
        Self { dies_at_ns: Some(50_000_000), ..Self::good() }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! DMA: the device reads memory into its buffer, and writes memory from it. A transfer takes it 100 ms.

use core::fmt;

use tiny::answers::{Wrong, expect, expect_that};
use tiny::boot::free_memory;
use tiny::random::Random;
use tiny::{cpu, print};

use crate::clock::{self, Waiting, pause};
use crate::device::{self, Dma};
use crate::interrupts::{self, came};
use crate::request::Request;

/// The device's buffer.
const BUFFER: u64 = 0x40000;
/// Bytes of a transfer. QEMU before 9.0 ends the machine at one that reaches the buffer's end.
pub const BYTES: u64 = 4080;
/// Memory that is read and written: nothing of the program's or the loader's is that high.
pub const SOURCE: u64 = 4 << 20;
/// The same.
pub const SINK: u64 = SOURCE + 0x2000;
/// Bytes of memory that the transfers need.
pub const NEEDED: u64 = SINK + 0x1000;
/// A value that no pattern has at the same place.
const BLANK: u64 = 0xdead_dead_dead_dead;
const RUN: u64 = 1;
const TO_MEMORY: u64 = 1 << 1;
/// A transfer's end interrupts.
pub const INTERRUPTS: u64 = 1 << 2;
/// Longest wait for a transfer, and for its interrupt behind it.
pub const LIMIT_MS: u32 = 5000;
const INTERRUPT_LIMIT_MS: u32 = 1000;

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From an address to the device's buffer.
    ToDevice,
    /// From the device's buffer to an address.
    ToMemory,
}

/// Starts a transfer.
pub fn start(direction: Direction, address: u64, bytes: u64, flags: u64) {
    let (source, destination, command) = match direction {
        Direction::ToDevice => (address, BUFFER, RUN),
        Direction::ToMemory => (BUFFER, address, RUN | TO_MEMORY),
    };
    device::write_dma(Dma::Source, source);
    device::write_dma(Dma::Destination, destination);
    device::write_dma(Dma::Count, bytes);
    device::write_dma(Dma::Command, command | flags);
}

/// Returns whether a transfer is under way.
pub fn is_running() -> bool {
    device::read_dma(Dma::Command) & RUN != 0
}

/// Starts a transfer, and returns once it is done.
pub fn transfer(direction: Direction, address: u64, bytes: u64, flags: u64) -> Result<(), Wrong> {
    start(direction, address, bytes, flags);
    let is_done = clock::wait(Waiting::Halted, LIMIT_MS, || !is_running());
    expect_that("transfer of", address, device::read_dma(Dma::Command), is_done)
}

/// The same without an interrupt.
pub fn quiet(direction: Direction, address: u64, bytes: u64) -> Result<(), Wrong> {
    transfer(direction, address, bytes, 0)
}

/// There and back again, once; the completion is polled.
pub fn once(_: &Request<'_>) -> Result<(), Wrong> {
    expect_that("free memory up to", NEEDED, free_memory().end, free_memory().end >= NEEDED)?;
    fill(SOURCE, Some(1));
    fill(SINK, None);
    quiet(Direction::ToDevice, SOURCE, BYTES)?;
    quiet(Direction::ToMemory, SINK, BYTES)?;
    match first_difference(1) {
        None => Ok(()),
        Some(at) => Err(Wrong::new("memory at", at, read(at))),
    }
}

/// Counts of a stream.
#[derive(Default)]
pub struct Counts {
    /// Transfers that were started.
    pub transfers: u32,
    /// Transfers without an interrupt.
    pub lost: u32,
    /// Interrupts too many.
    pub double: u32,
    /// Round trips after which the memory was another.
    pub wrong: u32,
    /// Transfers that did not end.
    pub stuck: u32,
}

impl Counts {
    /// Returns whether everything came as it was to.
    pub fn are_good(&self) -> bool {
        self.lost + self.double + self.wrong + self.stuck == 0
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { transfers, lost, double, wrong, stuck } = self;
        write!(f, "transfers={transfers} lost={lost} double={double} wrong={wrong} stuck={stuck}")
    }
}

/// There and back again, for ever (or `rounds=` times), with an interrupt at each end; a line each second.
pub fn stream(request: &Request<'_>) -> Result<(), Wrong> {
    const REPORT_MS: u32 = 1000;
    interrupts::use_messages(request.edu.function)?;
    expect_that("free memory up to", NEEDED, free_memory().end, free_memory().end >= NEEDED)?;
    let (mut counts, mut beat, mut longest, mut reported) = (Counts::default(), 0, 0, clock::periods());
    for round in 0..request.rounds.unwrap_or(u64::MAX) {
        fill(SOURCE, Some(round));
        fill(SINK, None);
        longest = longest.max(one(Direction::ToDevice, SOURCE, &mut counts));
        longest = longest.max(one(Direction::ToMemory, SINK, &mut counts));
        counts.wrong += u32::from(first_difference(round).is_some());
        if (clock::periods() - reported) * clock::PERIOD_MS >= REPORT_MS {
            print!("edu: stream {beat} {counts} longest={longest}\n");
            (beat, longest, reported) = (beat + 1, 0, clock::periods());
        }
    }
    pause(INTERRUPT_LIMIT_MS);
    print!("edu: stream {beat} {counts} longest={longest}\n");
    expect("stream with transfers", counts.transfers.into(), counts.are_good().into(), 1)
}

/// One transfer with its interrupt; the ticks that it took.
fn one(direction: Direction, address: u64, counts: &mut Counts) -> u64 {
    let (expected, start) = (came() + 1, cpu::ticks());
    counts.transfers += 1;
    if transfer(direction, address, BYTES, INTERRUPTS).is_err() {
        counts.stuck += 1;
    } else if !clock::wait(Waiting::Running, INTERRUPT_LIMIT_MS, || came() >= expected) {
        counts.lost += 1;
    }
    let ticks = cpu::ticks() - start;
    counts.double += came().saturating_sub(expected);
    ticks
}

/// Fills a transfer's memory with the pattern of a round, or with what is none.
pub fn fill(address: u64, round: Option<u64>) {
    let mut random = Random::new(round.unwrap_or(0));
    for at in (address..address + BYTES).step_by(8) {
        write(at, if round.is_some() { random.draw() } else { BLANK });
    }
}

/// The first address of the sink that does not hold the pattern of a round.
pub fn first_difference(round: u64) -> Option<u64> {
    let mut random = Random::new(round);
    (SINK..SINK + BYTES).step_by(8).find(|&at| read(at) != random.draw())
}

/// Reads memory that is no object of Rust's.
pub fn read(address: u64) -> u64 {
    // SAFETY: free memory is mapped, and no object of Rust's; the device changes it, so the read is volatile.
    unsafe { (address as *const u64).read_volatile() }
}

/// Writes it.
pub fn write(address: u64, value: u64) {
    // SAFETY: as read.
    unsafe { (address as *mut u64).write_volatile(value) };
}

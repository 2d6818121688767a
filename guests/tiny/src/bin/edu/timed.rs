// SPDX-License-Identifier: MIT OR Apache-2.0
//! The delivery of an interrupt to a CPU that sleeps, in instructions. The device's DMA engine ends a transfer at a
//! full millisecond of the emulator's clock (QEMU, hw/misc/edu.c), which the TSC follows where instructions are counted
//! (`-icount shift=0,sleep=off`). A transfer that is polled shows where in the TSC's milliseconds that is.

use core::sync::atomic::{AtomicU64, Ordering};

use tiny::answers::{Wrong, expect_that};
use tiny::boot::free_memory;
use tiny::cpu;

use crate::clock::{Waiting, pause};
use crate::delivery::{await_one, series};
use crate::interrupts::{self, came};
use crate::request::Request;
use crate::transfer::{BYTES, Direction, INTERRUPTS, NEEDED, SOURCE, is_running, start};

/// Ticks of the TSC in a millisecond, where each instruction takes a nanosecond.
const MILLISECOND: u64 = 1_000_000;
/// The part of a transfer's 100 ms that is not polled.
const BEFORE_POLLS_MS: u32 = 80;
const MOST_POLLS: u32 = 100_000_000;

/// The end of a transfer within a millisecond of the TSC.
static END: AtomicU64 = AtomicU64::new(0);

/// By message, at the end of a transfer.
pub fn halted(request: &Request<'_>) -> Result<(), Wrong> {
    expect_that("free memory up to", NEEDED, free_memory().end, free_memory().end >= NEEDED)?;
    interrupts::use_messages(request.edu.function)?;
    END.store(polled_end()?, Ordering::Relaxed);
    series("msi", "halted-by-timer", request.count, transfer_halted)
}

/// It is seen some instructions late: a read of the command register, and the branch behind it.
fn polled_end() -> Result<u64, Wrong> {
    start(Direction::ToDevice, SOURCE, BYTES, 0);
    pause(BEFORE_POLLS_MS);
    expect_that("transfer under way", 1, 0, is_running())?;
    let is_done = (0..MOST_POLLS).any(|_| !is_running());
    let end = cpu::ticks() % MILLISECOND;
    expect_that("end of a transfer", 1, 0, is_done).map(|()| end)
}

fn transfer_halted() -> Result<u64, Wrong> {
    let before = came();
    start(Direction::ToDevice, SOURCE, BYTES, INTERRUPTS);
    await_one(Waiting::Halted, before)?;
    Ok((interrupts::last_ticks() % MILLISECOND + MILLISECOND - END.load(Ordering::Relaxed)) % MILLISECOND)
}

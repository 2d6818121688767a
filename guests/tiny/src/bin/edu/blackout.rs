// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transfers that end while the CPU executes no instruction of the guest's, because the hypervisor is being replaced.
//!
//! ```text
//! start ── reads: it runs ── last read: it runs ─┬─ (no instruction of the guest's) ─┬─ handler
//!        ran                                     │ away                              │
//! ```
//!
//! The CPU reads the device's command register all the time. So a transfer that it saw run at the last read ended
//! behind that read, and before the handler.

use core::cell::Cell;

use tiny::answers::{Wrong, expect, expect_that};
use tiny::boot::free_memory;
use tiny::{cpu, print};

use crate::clock::{self, Waiting};
use crate::interrupts::{self, came};
use crate::request::Request;
use crate::transfer::{BYTES, Counts, Direction, INTERRUPTS, LIMIT_MS, NEEDED, SINK, SOURCE};
use crate::transfer::{fill, first_difference, is_running, start};

/// Ticks between two reads of the command register: some ten microseconds.
const INTERVAL: u64 = 100_000;
/// Time for an interrupt too many behind the last transfer.
const AFTERWARDS_MS: u32 = 1000;

/// The end of a transfer, in ticks.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    /// From its start to the last read that saw it run.
    ran: u64,
    /// From there to the first instruction of its interrupt's handler. 0 if the CPU saw it ended before the handler, or
    /// none came.
    away: u64,
}

/// There and back again, for ever (or `rounds=` times), with an interrupt at each end. A line for each round reports
/// the transfer of the two that ended unseen for longer.
pub fn blackout(request: &Request<'_>) -> Result<(), Wrong> {
    interrupts::use_messages(request.edu.function)?;
    expect_that("free memory up to", NEEDED, free_memory().end, free_memory().end >= NEEDED)?;
    let (mut counts, before, mut last) = (Counts::default(), came(), None);
    for round in 0..request.rounds.unwrap_or(u64::MAX) {
        fill(SOURCE, Some(round));
        fill(SINK, None);
        let there = watch(Direction::ToDevice, SOURCE, &mut counts, last);
        let back = watch(Direction::ToMemory, SINK, &mut counts, None);
        counts.wrong += u32::from(first_difference(round).is_some());
        last = Some((round, if there.away > back.away { there } else { back }));
    }
    clock::pause(AFTERWARDS_MS);
    counts.double = counts.double.max((came() - before).saturating_sub(counts.transfers));
    last.into_iter().for_each(|(round, end)| report(round, end, &counts));
    expect("right transfers", counts.transfers.into(), counts.are_good().into(), 1)
}

fn report(round: u64, End { ran, away }: End, counts: &Counts) {
    print!("edu: blackout {round} ran={ran} away={away} {counts}\n");
}

/// One transfer, until it and its interrupt are there. The line of the round before is printed meanwhile, so that a
/// transfer is under way nearly all the time.
fn watch(direction: Direction, address: u64, counts: &mut Counts, last: Option<(u64, End)>) -> End {
    let (expected, began) = (came() + 1, cpu::ticks());
    start(direction, address, BYTES, INTERRUPTS);
    last.into_iter().for_each(|(round, end)| report(round, end, counts));
    counts.transfers += 1;
    let (seen, was_unseen) = (Cell::new(began), Cell::new(true));
    let is_over = || {
        let now = cpu::ticks();
        let (runs, has_come) = (is_running(), came() >= expected);
        if runs {
            seen.set(now);
            while cpu::ticks() - now < INTERVAL {}
        } else if !has_come {
            was_unseen.set(false);
        }
        !runs && has_come
    };
    if !clock::wait(Waiting::Running, LIMIT_MS, is_over) {
        let problem = if is_running() { &mut counts.stuck } else { &mut counts.lost };
        *problem += 1;
        return End::default();
    }
    counts.double += came() - expected;
    let away = if was_unseen.get() { interrupts::last_ticks().saturating_sub(seen.get()) } else { 0 };
    End { ran: seen.get() - began, away }
}

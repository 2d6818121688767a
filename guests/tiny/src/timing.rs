// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples and what is reported of them: `exits: NAME min=N median=N n=N`.

use crate::{cpu, print};
use core::sync::atomic::{AtomicU64, Ordering};

/// Samples there is room for.
pub const ROOM: usize = 4096;

static SAMPLES: [AtomicU64; ROOM] = [const { AtomicU64::new(0) }; ROOM];

/// Times an action from before to after, and prints the row.
pub fn row(name: &str, repetitions: usize, mut action: impl FnMut()) {
    row_of(name, repetitions, || {
        let start = cpu::ticks();
        action();
        cpu::ticks() - start
    });
}

/// Prints the row of an action that takes its own time.
pub fn row_of(name: &str, repetitions: usize, mut timed: impl FnMut() -> u64) {
    timed(); // The first one finds nothing where it is wanted: caches, the emulator's translation.
    let repetitions = repetitions.min(ROOM);
    let (least, median) = sample(repetitions, timed);
    print!("exits: {name} min={least} median={median} n={repetitions}\n");
}

/// The least and the median of an action that takes its own time, of [`ROOM`] repetitions at most.
pub fn sample(repetitions: usize, mut timed: impl FnMut() -> u64) -> (u64, u64) {
    let samples = &SAMPLES[..repetitions.min(ROOM)];
    samples.iter().for_each(|sample| sample.store(timed(), Ordering::Relaxed));
    least_and_median(samples)
}

/// The middle and the upper end of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The upper one of an even number's two in the middle.
    pub median: u64,
    /// The least that 99 of 100 are not above.
    pub p99: u64,
    /// The greatest.
    pub most: u64,
}

/// The spread of an action that takes its own time, of [`ROOM`] repetitions at most.
pub fn spread(repetitions: usize, mut timed: impl FnMut() -> u64) -> Spread {
    let samples = &SAMPLES[..repetitions.clamp(1, ROOM)];
    samples.iter().for_each(|sample| sample.store(timed(), Ordering::Relaxed));
    let mut sorted = [0; ROOM];
    let sorted = sort(samples, &mut sorted);
    let at = |place: usize| sorted.get(place).copied().unwrap_or(0);
    let count = sorted.len();
    Spread { median: at(count / 2), p99: at((count * 99).div_ceil(100) - 1), most: at(count - 1) }
}

/// Prints that this machine cannot have the row.
pub fn absent(name: &str, reason: &str) {
    print!("exits: {name} absent: {reason}\n");
}

/// The median is the upper one of an even number: a sample that was seen.
fn least_and_median(samples: &[AtomicU64]) -> (u64, u64) {
    let mut sorted = [0; ROOM];
    let sorted = sort(samples, &mut sorted);
    (sorted.first().copied().unwrap_or(0), sorted.get(sorted.len() / 2).copied().unwrap_or(0))
}

/// Copies samples, and sorts the copies.
fn sort<'a>(samples: &[AtomicU64], sorted: &'a mut [u64; ROOM]) -> &'a [u64] {
    let sorted = &mut sorted[..samples.len()];
    sorted.iter_mut().zip(samples).for_each(|(place, sample)| *place = sample.load(Ordering::Relaxed));
    sorted.sort_unstable();
    sorted
}

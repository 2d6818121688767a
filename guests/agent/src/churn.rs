// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every CPU at work, watched: patterns in memory, a clock that all share, and how long any of them stands still.

use crate::tasks::pattern;
use crate::{log, machine};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Words that one thread writes and reads back in a round: 64 KiB.
const WORDS: usize = (64 << 10) / 8;

/// State that all threads share.
struct Watched {
    start: Instant,
    /// The latest time that anyone has read, in nanoseconds since the start.
    latest_ns: AtomicU64,
    /// Times that a clock stood before what another had read already.
    backwards: AtomicU64,
    wrong_words: AtomicU64,
    /// The longest time between two reads of the clock by one thread, in nanoseconds.
    longest_ns: AtomicU64,
    /// Rounds of each thread.
    rounds: Vec<AtomicU64>,
}

impl Watched {
    /// Reads the clock. The word is read before it, so the clock may not stand before that.
    fn read_clock(&self) -> u64 {
        let latest = self.latest_ns.load(Ordering::SeqCst);
        let now = self.start.elapsed().as_nanos() as u64;
        if now < latest {
            self.backwards.fetch_add(1, Ordering::Relaxed);
        }
        self.latest_ns.fetch_max(now, Ordering::SeqCst);
        now
    }

    /// One thread's work, for ever.
    fn work(&self, number: usize) {
        let (mut words, mut last) = (vec![0; WORDS], self.read_clock());
        for round in 0.. {
            let piece = round * self.rounds.len() + number;
            words.iter_mut().enumerate().for_each(|(word, value)| *value = black_box(pattern(piece, word)));
            let is_wrong = |(word, value): &(usize, &u64)| black_box(**value) != pattern(piece, *word);
            self.wrong_words.fetch_add(words.iter().enumerate().filter(is_wrong).count() as u64, Ordering::Relaxed);
            self.rounds[number].fetch_add(1, Ordering::Relaxed);
            let now = self.read_clock();
            self.longest_ns.fetch_max(now.saturating_sub(last), Ordering::Relaxed);
            last = now;
        }
    }

    fn report(&self, beat: u64) {
        let rounds = || self.rounds.iter().map(|rounds| rounds.load(Ordering::Relaxed));
        let number = |of: &AtomicU64| of.load(Ordering::Relaxed);
        log!(
            "churn {beat} slowest={} fastest={} wrong={} backwards={} longest_ms={}",
            rounds().min().unwrap_or(0),
            rounds().max().unwrap_or(0),
            number(&self.wrong_words),
            number(&self.backwards),
            self.longest_ns.swap(0, Ordering::Relaxed) / 1_000_000
        );
    }
}

/// A thread for each CPU, for ever; a line at every period.
pub fn churn(period: Duration) {
    let rounds = (0..machine::cpus()).map(|_| AtomicU64::new(0)).collect();
    let watched = Watched {
        start: Instant::now(),
        latest_ns: AtomicU64::new(0),
        backwards: AtomicU64::new(0),
        wrong_words: AtomicU64::new(0),
        longest_ns: AtomicU64::new(0),
        rounds,
    };
    thread::scope(|scope| {
        for number in 0..watched.rounds.len() {
            let watched = &watched;
            scope.spawn(move || watched.work(number));
        }
        for beat in 0.. {
            thread::sleep(period);
            watched.report(beat);
        }
    });
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Emulators at a time: one for each core, and one more while cores idle, since many boots only wait.

use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{available_parallelism, sleep};
use std::time::Duration;

/// Least and most emulators that the cores are used for: each has at least two threads that work, and its memory.
const LEAST: usize = 2;
const MOST: usize = 8;
/// Cores that have nothing to do, of all in [`WINDOW`], where one more emulator may run.
const IDLE_CORES: f64 = 0.75;
const WINDOW: Duration = Duration::from_secs(1);

static RUNNING: Mutex<usize> = Mutex::new(0);

/// A lane for a boot. Dropped, it is the next one's.
#[derive(Debug)]
pub struct Lane(());

impl Drop for Lane {
    fn drop(&mut self) {
        *running() -= 1;
    }
}

/// Returns the number of emulators that run while no core idles.
pub fn usual() -> usize {
    available_parallelism().map_or(LEAST, usize::from).clamp(LEAST, MOST)
}

/// Waits for a lane: one of the usual ones, or one more that idle cores can serve.
pub fn enter() -> Lane {
    let mut idle = 0.0;
    loop {
        let mut running = running();
        if may_enter(*running, usual(), idle) {
            *running += 1;
            return Lane(());
        }
        drop(running);
        idle = idle_cores(WINDOW);
    }
}

fn running() -> MutexGuard<'static, usize> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn may_enter(running: usize, usual: usize, idle_cores: f64) -> bool {
    running < usual || (running == usual && idle_cores >= IDLE_CORES)
}

/// Cores that had nothing to do from now until the end of a window; none where the kernel does not report it.
fn idle_cores(window: Duration) -> f64 {
    let ticks = || Ticks::parse(&fs::read_to_string("/proc/stat").unwrap_or_default());
    let before = ticks();
    sleep(window);
    let (Some(before), Some(after)) = (before, ticks()) else { return 0.0 };
    after.idle_share_since(before) * available_parallelism().map_or(1, usize::from) as f64
}

/// The time of all cores since the machine started, in the kernel's ticks (`proc_stat(5)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    idle: u64,
    all: u64,
}

impl Ticks {
    /// Reads the line `cpu USER NICE SYSTEM IDLE IOWAIT …`.
    fn parse(stat: &str) -> Option<Self> {
        let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        let fields: Vec<u64> = fields.map(str::parse).collect::<Result<_, _>>().ok()?;
        Some(Self { idle: fields.get(3)? + fields.get(4)?, all: fields.iter().sum() })
    }

    fn idle_share_since(self, before: Self) -> f64 {
        let all = self.all.saturating_sub(before.all).max(1);
        self.idle.saturating_sub(before.idle) as f64 / all as f64
    }
}

#[cfg(test)]
#[path = "lanes_tests.rs"]
mod tests;

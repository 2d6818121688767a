// SPDX-License-Identifier: MIT OR Apache-2.0
//! The closing lines of a run: its slowest boots, and each failure in a few lines.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Boots that the closing lines name.
const SLOWEST: usize = 20;
/// Last lines of a failure that the closing lines repeat.
const LAST_LINES: usize = 6;

static TIMES: Mutex<Vec<(Duration, String)>> = Mutex::new(Vec::new());
static FAILURES: Mutex<Vec<String>> = Mutex::new(Vec::new());
static REPEATED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Notes how long a boot took.
pub fn note_time(name: &str, time: Duration) {
    locked(&TIMES).push((time, name.to_owned()));
}

/// Notes that a boot failed, and why.
pub fn note_failure(name: &str, time: Duration, reason: &str) {
    let mut lines = reason.lines();
    let first = lines.next().unwrap_or_default();
    let rest: Vec<&str> = lines.collect();
    let last = rest[rest.len().saturating_sub(LAST_LINES)..].iter().map(|line| format!("\nfailed:   {line}"));
    let mut failure = format!("failed: {name} after {:.1} s: {first}", time.as_secs_f64());
    failure.extend(last);
    locked(&FAILURES).push(failure);
}

/// Notes that a test repeats an update that was rolled back because the emulator's CPUs had waited for a core.
pub fn note_repeated(reason: &str) {
    locked(&REPEATED).push(reason.lines().next().unwrap_or_default().to_owned());
}

/// Prints the updates that were repeated: none on an idle machine.
pub fn print_repeated() {
    let repeated = locked(&REPEATED);
    println!("repeated updates, since CPUs of the emulator had waited for a core: {}", repeated.len());
    repeated.iter().for_each(|reason| println!("  {reason}"));
}

/// Prints the failures, each line marked, so that scripts can repeat them at their own end.
pub fn print_failures() {
    locked(&FAILURES).iter().for_each(|failure| println!("{failure}"));
}

/// Prints the slowest boots of a run of several.
pub fn print_slowest() {
    let mut times = std::mem::take(&mut *locked(&TIMES));
    if times.len() < 2 {
        return;
    }
    times.sort_unstable_by(|one, other| other.cmp(one));
    println!("the slowest of {} boots, in seconds:", times.len());
    for (time, name) in times.iter().take(SLOWEST) {
        println!("{:>7.1}  {name}", time.as_secs_f64());
    }
}

fn locked<T>(notes: &Mutex<T>) -> MutexGuard<'_, T> {
    notes.lock().unwrap_or_else(PoisonError::into_inner)
}

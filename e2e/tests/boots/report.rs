// SPDX-License-Identifier: MIT OR Apache-2.0
//! The closing lines of a run: its slowest boots.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Boots that the closing lines name.
const SLOWEST: usize = 20;

static TIMES: Mutex<Vec<(Duration, String)>> = Mutex::new(Vec::new());

/// Notes how long a boot took.
pub fn note_time(name: &str, time: Duration) {
    TIMES.lock().unwrap_or_else(PoisonError::into_inner).push((time, name.to_owned()));
}

/// Prints the slowest boots of a run of several.
pub fn print_slowest() {
    let mut times = std::mem::take(&mut *TIMES.lock().unwrap_or_else(PoisonError::into_inner));
    if times.len() < 2 {
        return;
    }
    times.sort_unstable_by(|one, other| other.cmp(one));
    println!("the slowest of {} boots, in seconds:", times.len());
    for (time, name) in times.iter().take(SLOWEST) {
        println!("{:>7.1}  {name}", time.as_secs_f64());
    }
}

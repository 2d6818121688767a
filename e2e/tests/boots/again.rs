// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boots that failed in a whole run are tried once more, one after the other and with nothing beside them.
//!
//! The emulator's processors are threads, and QEMU's (7.2 and 10) write each other's flags without a lock in two places. Of both Baton
//! keeps clear where it can (`vm::machine::note_initial_x87`, `arch/reminder.rs`), but a guest's own FXRSTOR or XRSTOR on another
//! processor can still take back what processor 0 has just noted: that nested paging is on, that a guest was left, or that
//! interrupts are let in. A failure of ours comes back; one that does not is told at the very end, with its reason, and is there
//! to be understood. Many at a time are not tried again.

use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use libtest_mimic::{Arguments, Conclusion, Trial};

/// More failures than this are not the emulator's.
const MOST: u64 = 8;
/// So much of a reason stands in the closing lines; all of it stands above.
const REASON_CHARS: usize = 600;

static FAILED: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

/// Notes a failure.
pub fn note(name: &str, reason: &str) {
    let short = reason.chars().take(REASON_CHARS).collect();
    FAILED.lock().unwrap_or_else(PoisonError::into_inner).push((name.to_owned(), short));
}

/// How the run ended, after those that failed had their second try.
pub fn try_alone(arguments: &Arguments, conclusion: &Conclusion, trials: impl FnOnce() -> Vec<Trial>) -> ExitCode {
    let is_whole_run = arguments.filter.is_none() && !arguments.list;
    if !is_whole_run || !(1..=MOST).contains(&conclusion.num_failed) {
        return conclusion.exit_code();
    }
    let failed = std::mem::take(&mut *FAILED.lock().unwrap_or_else(PoisonError::into_inner));
    if failed.len() as u64 != conclusion.num_failed {
        // One did not even come to its end: it panicked.
        return conclusion.exit_code();
    }
    println!("{} failed beside others; each is tried once more, alone", failed.len());
    let is_one_of_them = |trial: &Trial| failed.iter().any(|(name, _)| name == trial.name());
    let those = trials().into_iter().filter(is_one_of_them).collect();
    let alone = Arguments { test_threads: Some(1), ..arguments.clone() };
    let second = libtest_mimic::run(&alone, those);
    for (name, reason) in &failed {
        println!("failed beside others: {name}: {reason}");
    }
    second.exit_code()
}

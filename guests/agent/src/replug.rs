// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs taken away from the running kernel and given back to it (Linux Documentation/core-api/cpu_hotplug.rst),
//! while others compute.

use crate::{log, stress};
use std::fs;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const CPUS: &str = "/sys/devices/system/cpu";

/// Takes each CPU but the first away and gives it back, so many times over, and prints the outcome.
pub fn run(times: u64) {
    let cpus = match stress::cpus() {
        Ok(cpus) => cpus,
        Err(error) => return log!("replug: WRONG: {error}"),
    };
    let is_over = AtomicBool::new(false);
    let result = thread::scope(|scope| {
        for _ in &cpus {
            scope.spawn(|| compute(&is_over));
        }
        let result = (0..times).try_for_each(|_| cpus.iter().skip(1).try_for_each(|&at| off_and_on(at)));
        is_over.store(true, Ordering::Relaxed);
        result
    });
    match result {
        Ok(()) => log!("replug: {} CPUs off and on {times} times", cpus.len() - 1),
        Err(error) => log!("replug: WRONG: {error}"),
    }
}

fn off_and_on(cpu: usize) -> Result<(), String> {
    set_online(cpu, false)?;
    set_online(cpu, true)?;
    // It is on when something runs on it.
    thread::spawn(move || stress::bind(cpu)).join().map_err(|_| "thread panicked".to_owned())?
}

fn set_online(cpu: usize, wanted: bool) -> Result<(), String> {
    let path = format!("{CPUS}/cpu{cpu}/online");
    let digit = if wanted { "1" } else { "0" };
    fs::write(&path, digit).map_err(|error| format!("{path} does not take {digit}: {error}"))?;
    let found = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    if found.trim() == digit { Ok(()) } else { Err(format!("{path} reads {found:?}, not {digit}")) }
}

fn compute(is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        black_box((0..10_000_u64).fold(0_u64, |sum, step| black_box(sum ^ step)));
    }
}

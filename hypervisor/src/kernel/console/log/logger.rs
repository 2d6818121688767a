// SPDX-License-Identifier: MIT OR Apache-2.0
//! The logger of the `log` crate, and the follower on the control channel.

use core::sync::atomic::{AtomicBool, Ordering};

use klog::{Level, Ring};

use super::super::output;
use super::predecessor;
use super::rings::{EARLY, EARLY_MEMORY, clock, write};
use crate::arch::percpu::{BOOT_CPU, PerCpu, wake};

/// A client on the control channel follows the log.
static HAS_FOLLOWER: AtomicBool = AtomicBool::new(false);
/// Something was logged that the follower's CPU has not been informed of.
static HAS_NEWS: AtomicBool = AtomicBool::new(false);

struct Logger;

static LOGGER: Logger = Logger;

/// Starts logging what is at most `level`.
pub fn start(level: Level) {
    EARLY.call_once(|| match Ring::new(&EARLY_MEMORY, 0, clock()) {
        Ok(ring) => {
            predecessor::count_on(&ring);
            ring
        }
        Err(error) => unreachable!("{error}"),
    });
    log::set_max_level(to_filter(level));
    // A second call fails and changes nothing: the logger is the same.
    let _ = log::set_logger(&LOGGER);
}

/// Sets whether a client follows the log.
pub fn set_followed(is_followed: bool) {
    HAS_FOLLOWER.store(is_followed, Ordering::Relaxed);
}

/// Wakes the CPU that serves followers, if other CPUs have logged. From each CPU's loop.
pub fn notify_follower(me: &PerCpu) {
    if HAS_NEWS.load(Ordering::Relaxed) {
        HAS_NEWS.store(false, Ordering::Relaxed);
        if me.index != BOOT_CPU {
            wake(BOOT_CPU);
        }
    }
}

impl log::Log for Logger {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        write(from_log(record.level()), record.target(), *record.args());
        if HAS_FOLLOWER.load(Ordering::Relaxed) {
            HAS_NEWS.store(true, Ordering::Relaxed);
        }
        output::recorded();
    }

    fn flush(&self) {}
}

#[inline]
fn from_log(level: log::Level) -> Level {
    match level {
        log::Level::Error => Level::Error,
        log::Level::Warn => Level::Warn,
        log::Level::Info => Level::Info,
        log::Level::Debug => Level::Debug,
        log::Level::Trace => Level::Trace,
    }
}

fn to_filter(level: Level) -> log::LevelFilter {
    match level {
        Level::Error => log::LevelFilter::Error,
        Level::Warn => log::LevelFilter::Warn,
        Level::Info => log::LevelFilter::Info,
        Level::Debug => log::LevelFilter::Debug,
        Level::Trace => log::LevelFilter::Trace,
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU time that a process takes on this machine, as the scheduler accounts it.
//!
//! `/proc/PID/stat` counts in ticks of 10 ms, which is as much as a halted machine takes in ten seconds. The
//! scheduler's account of each thread (`/proc/PID/task/TID/schedstat`, first field; Linux,
//! Documentation/scheduler/sched-stats.rst) is in nanoseconds.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// The CPU time of each thread of a process at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    by_thread: BTreeMap<u64, Duration>,
}

impl CpuTime {
    /// Reads the CPU time of the threads of process `pid`.
    ///
    /// # Errors
    ///
    /// The process is gone, or the kernel keeps no such account (CONFIG_SCHED_INFO is off).
    pub fn of(pid: u32) -> Result<Self> {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).with_context(|| format!("process {pid} is gone"))?;
        let mut by_thread = BTreeMap::new();
        for task in tasks {
            let task = task?;
            let thread = task.file_name().to_string_lossy().parse().context("a thread has no number")?;
            let path = task.path().join("schedstat");
            // A thread may end between the listing and this.
            let Ok(text) = fs::read_to_string(&path) else { continue };
            by_thread.insert(thread, spent(&text).with_context(|| format!("{}: {text:?}", path.display()))?);
        }
        Ok(Self { by_thread })
    }

    /// Returns the CPU time since `before`, without threads that ended in between.
    pub fn since(&self, before: &Self) -> Duration {
        let had = |thread| before.by_thread.get(thread).copied().unwrap_or_default();
        self.by_thread.iter().map(|(thread, spent)| spent.saturating_sub(had(thread))).sum()
    }
}

fn spent(text: &str) -> Option<Duration> {
    text.split_ascii_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(threads: &[(u64, u64)]) -> CpuTime {
        CpuTime { by_thread: threads.iter().map(|&(id, ns)| (id, Duration::from_nanos(ns))).collect() }
    }

    #[test]
    fn threads_that_come_count_and_threads_that_end_do_not_subtract() {
        let before = account(&[(1, 100), (2, 5_000_000)]);
        let after = account(&[(1, 130), (3, 7)]);
        assert_eq!(after.since(&before), Duration::from_nanos(37));
    }

    #[test]
    fn less_than_a_tick_of_the_kernels_clock_is_seen() {
        let pid = std::process::id();
        let before = CpuTime::of(pid).expect("this process has an account");
        while CpuTime::of(pid).expect("still").since(&before).is_zero() {}
        let spent = CpuTime::of(pid).expect("still").since(&before);
        assert!(spent < Duration::from_secs(1) && !spent.subsec_nanos().is_multiple_of(10_000_000), "{spent:?}");
        assert!(CpuTime::of(u32::MAX).is_err());
    }

    #[test]
    fn what_is_no_account_is_refused() {
        assert_eq!(spent("250 31 7\n"), Some(Duration::from_nanos(250)));
        assert_eq!((spent(""), spent("none")), (None, None));
    }
}

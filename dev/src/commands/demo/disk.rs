// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's disk: the agent's reports of blocks that it has written and verified.

use anyhow::{Result, bail, ensure};
use lab::disk_use::DiskUse;

/// The line with which the agent begins to use the disk.
const TASK: &str = "disk:";
/// Blocks of this size.
const BLOCK_KIB: u64 = 4;

/// The agent's reports of its disk so far, one each second.
#[derive(Debug, Default)]
pub(super) struct Disk {
    reports: Vec<DiskUse>,
    problem: Option<String>,
}

impl Disk {
    /// Returns a disk without reports if the guest's command line has the agent use one.
    pub(super) fn of(cmdline: &str) -> Option<Self> {
        let mut tasks = cmdline.split([' ', ',', '=']);
        tasks.any(|task| task.starts_with(TASK)).then(Self::default)
    }

    /// Takes a line of the guest's console.
    pub(super) fn see(&mut self, line: &str) {
        if line.contains("disk: WRONG") {
            self.problem.get_or_insert_with(|| line.trim().to_owned());
        }
        self.reports.extend(DiskUse::of(line));
    }

    /// Returns the number of reports.
    pub(super) fn reports(&self) -> usize {
        self.reports.len()
    }

    /// Describes all reports, and the slowest access in those after the first `before`.
    pub(super) fn since(&self, before: usize) -> Result<String> {
        if let Some(problem) = &self.problem {
            bail!("the guest's disk does not hold what it wrote: {problem}");
        }
        let (Some(last), Some(after)) = (self.reports.last(), self.reports.get(before..)) else {
            bail!("the guest has not used its disk; its lines about drivers have the reason");
        };
        let DiskUse { written, verified, wrong, errors, .. } = *last;
        ensure!(wrong == 0 && errors == 0, "of {verified} blocks {wrong} were read back wrong, with {errors} errors");
        let moved = last.blocks().saturating_sub(before.checked_sub(1).map_or(0, |at| self.reports[at].blocks()));
        ensure!(!after.is_empty() && moved > 0, "the guest did not use its disk after the update");
        let slowest = after.iter().map(|report| report.slowest_us).max().unwrap_or(0) as f64 / 1e3;
        Ok(format!(
            "It wrote {written} blocks of {BLOCK_KIB} KiB to its disk and verified {verified}, none wrong; the slowest \
             access since the update began took {slowest:.1} ms."
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(lines: &[&str]) -> Disk {
        let mut disk = Disk::of("console=ttyS0 agent=drivers,disk:16,wait").expect("it is asked for");
        lines.iter().for_each(|line| disk.see(line));
        disk
    }

    const FIRST: &str = "disk 0 written=100 verified=50 wrong=0 errors=0 slowest_us=900000\r";
    const SECOND: &str = "disk 1 written=160 verified=90 wrong=0 errors=0 slowest_us=2500";

    #[test]
    fn blocks_are_counted_and_the_slowest_access_since_is_reported() {
        let disk = disk(&["heartbeat 0", FIRST, SECOND]);
        assert_eq!(
            disk.since(1).expect("all is well"),
            "It wrote 160 blocks of 4 KiB to its disk and verified 90, none wrong; the slowest access since the \
             update began took 2.5 ms."
        );
    }

    #[test]
    fn a_block_that_is_wrong_a_disk_that_stops_and_one_that_is_not_there_are_errors() {
        let because = |lines: &[&str], before| disk(lines).since(before).expect_err("not well").to_string();
        let wrong = because(&[FIRST, "disk: WRONG: block 7 of round 2 is another", SECOND], 1);
        assert!(wrong.ends_with("disk: WRONG: block 7 of round 2 is another"), "{wrong}");
        let counted = because(&[FIRST, "disk 1 written=1 verified=9 wrong=1 errors=2 slowest_us=1"], 1);
        assert_eq!(counted, "of 9 blocks 1 were read back wrong, with 2 errors");
        assert!(because(&[FIRST], 1).contains("after the update"));
        assert!(because(&[FIRST, FIRST], 1).contains("after the update"));
        assert!(because(&[], 0).contains("has not used its disk"));
    }

    #[test]
    fn a_guest_that_is_not_to_use_a_disk_has_none() {
        assert!(Disk::of("console=ttyS0 agent=heartbeat:200:30,poweroff").is_none());
    }
}

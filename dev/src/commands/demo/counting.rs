// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest that counts: the agent's numbered lines, none of which may be missing.

use anyhow::{Result, bail, ensure};

/// The numbered lines so far: numbers, and how late each came.
#[derive(Debug, Default)]
pub(super) struct Count {
    beats: Vec<(u64, u64)>,
}

impl Count {
    /// Takes a line of a guest's console.
    pub(super) fn see(&mut self, line: &str) {
        self.beats.extend(beat(line));
    }

    /// Returns the number of lines.
    pub(super) fn beats(&self) -> usize {
        self.beats.len()
    }

    /// Describes the lines after the first `before`.
    pub(super) fn since(&self, before: usize) -> Result<String> {
        let expected = (0..).zip(&self.beats).find(|(expected, (number, _))| expected != number);
        if let Some((expected, (number, _))) = expected {
            bail!("the guest counted {number} where {expected} comes next");
        }
        ensure!(
            self.beats.len() > before,
            "the guest did not count on after the update; its last lines have the reason"
        );
        let latest = self.beats[before..].iter().map(|(_, late_us)| late_us).max().unwrap_or(&0);
        let last = self.beats.len() - 1;
        Ok(format!(
            "The guest counted on, from {before} to {last}; the latest of these came {:.1} ms late.",
            *latest as f64 / 1e3
        ))
    }
}

/// `heartbeat NUMBER … late_us=MICROSECONDS`.
fn beat(line: &str) -> Option<(u64, u64)> {
    let mut words = line.trim().strip_prefix("heartbeat ")?.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let late = words.find_map(|word| word.strip_prefix("late_us="))?;
    Some((number, late.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(lines: &[&str]) -> Count {
        let mut count = Count::default();
        lines.iter().for_each(|line| count.see(line));
        count
    }

    #[test]
    fn the_latest_beat_since_is_reported() {
        let lines = [
            "heartbeat 0 uptime=1.0 late_us=90000",
            "something else",
            "heartbeat 1 uptime=1.2 late_us=100\r",
            "heartbeat 2 uptime=1.4 late_us=2500",
        ];
        let count = counted(&lines);
        assert_eq!(count.beats(), 3);
        assert_eq!(
            count.since(1).expect("all are there"),
            "The guest counted on, from 1 to 2; the latest of these came 2.5 ms late."
        );
    }

    #[test]
    fn a_number_that_is_missing_and_an_end_are_found() {
        let skipped = counted(&["heartbeat 0 late_us=1", "heartbeat 2 late_us=1"]).since(0);
        assert_eq!(skipped.expect_err("1 is missing").to_string(), "the guest counted 2 where 1 comes next");
        let ended = counted(&["heartbeat 0 late_us=1"]).since(1).expect_err("nothing follows").to_string();
        assert!(ended.contains("did not count on"), "{ended}");
    }
}

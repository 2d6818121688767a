// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads of 4 KiB at random places of a disk, as the agent reports them (its task `reads`).

use anyhow::{Context as _, Result, ensure};

/// The beginnings of the agent's lines behind reads, and of the one that reports that there are none.
pub(super) const END: &str = "reads depth=";
pub(super) const WRONG: &str = "reads: WRONG";

/// One task of the agent's.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Round {
    /// Reads under way at a time.
    pub depth: u64,
    /// Microseconds.
    pub us: u64,
    /// Reads.
    pub count: u64,
}

impl Round {
    /// Reads `reads depth=1 us=2000123 count=9000 errors=0`.
    pub fn parse(line: &str) -> Result<Self> {
        let value = |name: &str| {
            let value = line.split_whitespace().find_map(|word| word.strip_prefix(name)?.parse::<u64>().ok());
            value.with_context(|| format!("the agent did not read its disk, or is of another release: {line:?}"))
        };
        let round = Self { depth: value("depth=")?, us: value("us=")?, count: value("count=")? };
        ensure!(value("errors=")? == 0 && round.us > 0, "reads failed: {line:?}");
        Ok(round)
    }

    /// Reads in a second.
    pub fn rate(&self) -> f64 {
        self.count as f64 * 1e6 / self.us as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_reads_in_a_time() {
        let round = Round::parse("reads depth=32 us=2000000 count=9000 errors=0\r").expect("good");
        assert_eq!(round, Round { depth: 32, us: 2_000_000, count: 9000 });
        let failed =
            ["reads: WRONG: no disk", "reads depth=1 us=1 count=1 errors=2", "reads depth=1 us=0 count=0 errors=0"];
        for line in failed {
            assert!(Round::parse(line).is_err(), "{line}");
        }
    }
}

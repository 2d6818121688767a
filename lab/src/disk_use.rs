// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reports of a Linux guest that writes and verifies its disk: the agent's task `disk`.

/// Counts since the guest began, and its slowest access since the report before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskUse {
    /// Blocks of 4 KiB that were written.
    pub written: u64,
    /// Blocks that were read back as written.
    pub verified: u64,
    /// Blocks that were not.
    pub wrong: u64,
    /// Accesses that failed.
    pub errors: u64,
    /// The slowest access, in microseconds.
    pub slowest_us: u64,
}

impl DiskUse {
    /// Reads `disk NUMBER written=… verified=… wrong=… errors=… slowest_us=…`; `None` for other lines.
    pub fn of(line: &str) -> Option<Self> {
        let words = line.trim().strip_prefix("disk ")?;
        let value = |name: &str| words.split_whitespace().find_map(|word| word.strip_prefix(name)?.parse().ok());
        Some(Self {
            written: value("written=")?,
            verified: value("verified=")?,
            wrong: value("wrong=")?,
            errors: value("errors=")?,
            slowest_us: value("slowest_us=")?,
        })
    }

    /// Returns the blocks that were accessed, all right.
    pub fn blocks(&self) -> u64 {
        self.written.saturating_add(self.verified)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_and_another_line_is_none() {
        let line = "disk 7 written=3 verified=2 wrong=0 errors=1 slowest_us=45\r";
        let expected = DiskUse { written: 3, verified: 2, wrong: 0, errors: 1, slowest_us: 45 };
        assert_eq!(DiskUse::of(line), Some(expected));
        assert_eq!(expected.blocks(), 5);
        for other in ["disk 7 written=3 ver", "disk: 256 blocks of /dev/vda", "heartbeat 0"] {
            assert_eq!(DiskUse::of(other), None, "{other}");
        }
    }
}

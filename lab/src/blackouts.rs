// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reports of a guest and the host on a transfer that ends in a blackout: the guest `edu` with `do=blackout`, and
//! the test image with `selftest=update:wait:interrupt`.

use wire::UpdateReport;

/// The time stamp counter's ticks in `ns` nanoseconds.
fn ticks(ns: u64, tsc_hz: u64) -> u64 {
    (u128::from(ns) * u128::from(tsc_hz) / 1_000_000_000) as u64
}

/// The guest's report on a round: a transfer there and one back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Ticks from the last time that the guest saw the transfer run to its interrupt's handler: of the two transfers of
    /// the round the longer time. 0 if the guest saw them end.
    pub away: u64,
    /// Interrupts that were lost, or came twice; wrong bytes; transfers that never ended: of all rounds so far.
    pub wrong: u64,
}

impl Round {
    /// Reads a line of the guest's; `None` for other lines.
    pub fn of(line: &str) -> Option<Self> {
        let (_, line) = line.split_once("edu: blackout ")?;
        let number = |name: &str| {
            let value = line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
            value.and_then(|value| value.parse::<u64>().ok())
        };
        let wrong = ["lost", "double", "wrong", "stuck"].into_iter().map(number).sum::<Option<u64>>()?;
        Some(Self { away: number("away")?, wrong })
    }

    /// Returns whether a transfer ended while the guest executed nothing for at least `ns` nanoseconds.
    pub fn ended_within(&self, ns: u64, tsc_hz: u64) -> bool {
        self.away > 0 && self.away >= ticks(ns, tsc_hz)
    }
}

/// Returns how long each CPU's guests executed nothing at least.
pub fn shortest_ns(report: &UpdateReport) -> u64 {
    report.cpus.iter().map(|cpu| cpu.entered_ns.saturating_sub(cpu.left_ns)).min().unwrap_or(report.blackout_ns)
}

/// Reads a line of the host's about the blackout of the update to this generation: whether an interrupt was pending
/// while all CPUs were between two images. `None` for other lines.
pub fn was_pending(line: &str, generation: u64) -> Option<bool> {
    let (_, what) = line.split_once(&format!("self-test: generation {generation}: "))?;
    Some(what.starts_with("vector ") && what.contains(" was pending at cpu"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_read_and_its_faults_are_summed_up() {
        let line = "edu: blackout 7 ran=100 away=3000000 transfers=16 lost=1 double=0 wrong=2 stuck=0";
        assert_eq!(Round::of(line), Some(Round { away: 3_000_000, wrong: 3 }));
        for other in ["edu: blackout: going", "edu: blackout 7 ran=1 away=2 transfers=16 lost=0 double=0 wr", "ok"] {
            assert_eq!(Round::of(other), None, "{other}");
        }
    }

    #[test]
    fn a_transfer_ended_within_a_time_that_is_no_longer_than_the_guests() {
        let round = |away| Round { away, wrong: 0 };
        assert!(round(2_000).ended_within(1_000, 2_000_000_000) && !round(1_999).ended_within(1_000, 2_000_000_000));
        assert!(!round(0).ended_within(0, 1), "the guest saw it end");
    }

    #[test]
    fn the_hosts_line_of_this_generation_counts() {
        let line = "[1.5] self-test: generation 3: vector 0x50 was pending at cpu1 after 4711 us in the blackout";
        assert_eq!((was_pending(line, 3), was_pending(line, 4)), (Some(true), None));
        assert_eq!(was_pending("self-test: generation 3: no vector was pending in the blackout", 3), Some(false));
    }
}

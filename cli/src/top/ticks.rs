// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ticks of a CPU by their user, from the host's own counters.

use wire::CpuPerf;

/// The bits of a CPU's counters.
pub(super) const COUNTER_MASK: u64 = (1 << 48) - 1;

/// Ticks of a CPU in a span of time. Those of guests, the host and idle add up to all, but for the counters' own error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    /// All of them.
    pub all: u64,
    /// Those in guests.
    pub guests: u64,
    /// Those in which the host executed.
    pub host: u64,
    /// Those in which the CPU waited for an interrupt.
    pub idle: u64,
}

impl Ticks {
    /// Returns the ticks since the counters were begun; `None` for none.
    pub fn since_begun(now: &CpuPerf) -> Option<Self> {
        Self::between(&CpuPerf { began_ns: now.began_ns, ..CpuPerf::default() }, now)
    }

    /// Returns the ticks between two readings; `None` if the counters were begun again in between, or there are none.
    pub fn between(before: &CpuPerf, now: &CpuPerf) -> Option<Self> {
        let all = now.ticks.checked_sub(before.ticks).filter(|all| *all > 0 && now.began_ns == before.began_ns)?;
        let counted = |of: fn(&CpuPerf) -> u64| of(now).wrapping_sub(of(before)) & COUNTER_MASK;
        let guests =
            |perf: &CpuPerf| perf.guests.iter().fold(perf.gone_ticks, |sum, guest| sum.saturating_add(guest.ticks));
        Some(Self {
            all,
            guests: guests(now).saturating_sub(guests(before)).min(all),
            host: counted(|perf| perf.host_reference_cycles).min(all),
            idle: counted(|perf| perf.idle_ticks).min(all),
        })
    }
}

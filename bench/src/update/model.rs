// SPDX-License-Identifier: MIT OR Apache-2.0
//! The blackout on a machine that no lab here has, from instructions measured and latencies of real CPUs.
//!
//! ```text
//! wake all, one by one ─▶ the last leaves its guest ─▶ meet, save, meet ─▶ restore, meet ─▶ enter
//! ```

/// Instructions per nanosecond: one at a time at 2.5 GHz, since most of what is touched in the blackout is in no CPU's
/// cache.
const INSTRUCTIONS_PER_NS: f64 = 1.0;
/// An x2APIC interrupt: its sender's write, and the way to the other CPU.
const SEND_NS: f64 = 80.0;
const DELIVER_NS: f64 = 1_000.0;
/// Leaving a guest and entering one again, with what the CPU itself saves and loads.
const WORLD_SWITCH_NS: f64 = 1_500.0;
/// A line of memory that another CPU has just written; at a meeting each CPU in turn has it.
const LINE_NS: f64 = 100.0;
/// Counters that all CPUs add to: stopped, saved, restored.
const MEETINGS: f64 = 3.0;

/// Microseconds for so many CPUs that execute so many instructions each, side by side.
pub(super) fn blackout_us(instructions: f64, cpus: u32) -> f64 {
    let cpus = f64::from(cpus);
    let wake = (cpus - 1.0) * SEND_NS + DELIVER_NS;
    let meet = MEETINGS * cpus * LINE_NS;
    (wake + meet + WORLD_SWITCH_NS + instructions / INSTRUCTIONS_PER_NS) / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_does_counts_once_and_what_one_does_for_each_counts_for_all() {
        let (one, many) = (blackout_us(20_000.0, 1), blackout_us(20_000.0, 128));
        assert!((20.0..25.0).contains(&one), "{one}");
        assert!((many - one - 127.0 * (SEND_NS + MEETINGS * LINE_NS) / 1e3).abs() < 1e-6, "{many}");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Capabilities of a CPU beside its counters, and the registers that report them.

use crate::not_yet_wired::{lbr, pebs};

/// Capabilities of a CPU beside its counters, each where it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Capabilities {
    /// Precise samples.
    pub pebs: Option<pebs::Description>,
    /// Last branch records.
    pub lbr: Option<lbr::Description>,
    /// Slots, and where they went.
    pub topdown: bool,
}

/// Returns what PERF_CAPABILITIES states of them: the format of the last branch records is the architecture's; PEBS
/// comes right behind the instruction, with the registers, and adaptive.
pub(super) const fn bits(has: &Capabilities) -> u64 {
    const LBR_ARCHITECTURAL: u64 = 0x3f;
    const PEBS: u64 = 1 << 6 | 1 << 7 | 4 << 8 | 1 << 14;
    const METRICS: u64 = 1 << 15;
    let lbr = if has.lbr.is_some() { LBR_ARCHITECTURAL } else { 0 };
    let pebs = if has.pebs.is_some() { PEBS } else { 0 };
    lbr | pebs | if has.topdown { METRICS } else { 0 }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Saved state of a guest's counters.

use super::numbering::INTEL_GENERAL;
use crate::SLOTS;

/// All that the guest can see of its counters, and what is still to be reported to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the names are the manual's")]
pub struct State {
    pub selects: [u64; INTEL_GENERAL],
    /// By slot: general ones, behind the eighth those of fixed purpose.
    pub values: [u64; SLOTS],
    pub fixed_control: u64,
    pub global_control: u64,
    pub global_status: u64,
    pub debug_control: u64,
    /// Its interrupt has not been raised yet.
    pub interrupts: bool,
}

/// No guest of this kind can be in the state: the field's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadState(pub &'static str);

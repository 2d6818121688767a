// SPDX-License-Identifier: MIT OR Apache-2.0
//! A model of a CPU's performance counters: registers as Intel's and AMD's manuals have them, over counters that
//! count exactly what a test lets the CPU do. [`IntelCore`] has PEBS, last branch records and top-down metrics
//! beside them.
//!
//! No cost is modelled and nothing is sampled: what the model is for is whether counts are kept, to the last one. A
//! write that a CPU would refuse is a failed test.

mod activity;
mod amd;
mod intel;
mod intel_core;
mod lbr;
mod pebs;
mod register;
#[cfg(test)]
mod tests;
mod topdown;

pub use activity::{Activity, Run};
pub use amd::{AmdPmu, Generation};
pub use intel::IntelPmu;
pub use intel_core::IntelCore;
pub use lbr::{Branch, Kind};
pub use pebs::Linear;
pub use register::VENDOR_EVENT;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU as its guest sees it: CPUID, MSRs, control registers, clocks.

pub mod cpuid;
pub mod cr4;
pub mod kvmclock;
pub mod models;
pub mod msr;
pub mod steal_time;

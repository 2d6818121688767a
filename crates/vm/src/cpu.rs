// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a guest is shown of its CPU: CPUID, MSRs, control registers, clocks.

pub mod cpuid;
pub mod cr4;
pub mod kvmclock;
pub mod msr;
pub mod steal_time;

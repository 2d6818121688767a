// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traits of the CPUs, which are all alike, that a vCPU depends on.

use svm::Features;

use crate::arch::smp;

/// Traits of the CPUs that a vCPU depends on.
#[derive(Clone, Copy)]
pub struct CpuTraits {
    pub features: Features,
    /// An emulator is below, in which a world switch can lose the request of an interrupt ([`crate::arch::reminder`]).
    pub may_lose_requests: bool,
}

impl CpuTraits {
    /// The traits of a machine with these SVM features.
    pub fn with(features: Features) -> Self {
        Self { features, may_lose_requests: smp::is_virtual() }
    }
}

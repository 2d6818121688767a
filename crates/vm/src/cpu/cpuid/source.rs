// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results of the host's CPUID.

pub(super) const EXTENDED: u32 = 0x8000_0000;

/// The four registers that CPUID returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct CpuidResult {
    pub eax: u32,
    pub ebx: u32,
    pub ecx: u32,
    pub edx: u32,
}

/// Source of the host's leaves: the instruction, or a table in tests.
pub trait CpuidSource {
    /// Returns the host's CPUID of a leaf and subleaf.
    fn leaf(&self, leaf: u32, subleaf: u32) -> CpuidResult;
}

impl<F: Fn(u32, u32) -> CpuidResult> CpuidSource for F {
    fn leaf(&self, leaf: u32, subleaf: u32) -> CpuidResult {
        self(leaf, subleaf)
    }
}

/// The host's leaves, zero where it has none (Intel's CPUs answer those with their last leaf).
pub(super) struct Host<'a, S> {
    source: &'a S,
    pub most_basic: u32,
    pub most_extended: u32,
}

impl<'a, S: CpuidSource> Host<'a, S> {
    pub fn new(source: &'a S) -> Self {
        let (most_basic, most_extended) = (source.leaf(0, 0).eax, source.leaf(EXTENDED, 0).eax);
        Self { source, most_basic, most_extended }
    }

    pub fn leaf(&self, leaf: u32, subleaf: u32) -> CpuidResult {
        let most = if leaf < EXTENDED { self.most_basic } else { self.most_extended };
        if leaf <= most { self.source.leaf(leaf, subleaf) } else { CpuidResult::default() }
    }
}

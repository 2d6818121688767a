// SPDX-License-Identifier: MIT OR Apache-2.0
//! Speculation features of the CPU as guests see them: those that work, and none that only claims to.

use crate::{Assessment, amd};

const LAST: u32 = 0x8000_0000;
const SIZES: u32 = 0x8000_0008;
const FEATURES: u32 = 0x8000_0021;
/// 8000_0021h EAX.
const LFENCE_SERIALIZES: u32 = 1 << 2;
const VERW_CLEARS: u32 = 1 << 5;

impl Assessment {
    /// Returns a leaf of the host's CPUID (EAX, EBX, ECX, EDX) as it is once the actions have been carried out. Linux
    /// searches for a serializing LFENCE and for VERW in leaf 8000_0021h, so there is one where there is something to
    /// report.
    pub fn leaf(&self, leaf: u32, host: [u32; 4]) -> [u32; 4] {
        let [eax, ebx, ecx, edx] = host;
        let cpu = &self.cpu;
        match leaf {
            LAST if self.features() != 0 && eax >= LAST => [eax.max(FEATURES), ebx, ecx, edx],
            SIZES => [eax, cpu.sizes_ebx, ecx, edx],
            FEATURES => [self.features(), ebx, cpu.extended_ecx, edx],
            _ => host,
        }
    }

    /// Returns whether LFENCE is serializing.
    pub const fn lfence_serializes(&self) -> bool {
        self.cpu.lfence_serializes()
    }

    fn features(&self) -> u32 {
        let when = |holds, bit| if holds { bit } else { 0 };
        self.cpu.extended_eax & !(LFENCE_SERIALIZES | VERW_CLEARS)
            | when(self.lfence_serializes(), LFENCE_SERIALIZES)
            | when(amd::clears_by_verw(&self.cpu), VERW_CLEARS)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Leaves that state how CPUs hang together: one package, one thread per core, the last cache shared by all.

use super::CpuidResult;

/// Subleaves kept of the cache leaves; no CPU has more levels and kinds.
pub(super) const CACHE_LEAVES: usize = 5;
/// From this level on a cache is shared by all cores.
const SHARED_LEVEL: u32 = 3;

const LEVEL_THREAD: u32 = 1;
const LEVEL_CORE: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Topology {
    vcpus: u32,
    /// Low bits of the APIC identifier that distinguish the cores.
    core_bits: u32,
}

impl Topology {
    pub fn new(vcpus: u32) -> Self {
        let vcpus = vcpus.max(1);
        Self { vcpus, core_bits: u32::BITS - (vcpus - 1).leading_zeros() }
    }

    /// Leaf 1, EBX bits 16–23.
    pub fn logical_cpus(&self) -> u32 {
        self.vcpus.min(0xff)
    }

    /// A flag that is set where there is more than one CPU; none for a bit that no register has.
    pub fn multi_processor_flag(&self, bit: u32) -> u32 {
        if self.vcpus > 1 { 1_u32.checked_shl(bit).unwrap_or(0) } else { 0 }
    }

    /// Leaf 0x8000_0008, ECX: cores less one, and the bits for them.
    pub fn amd_core_count(&self) -> u32 {
        (self.vcpus - 1).min(0xff) | self.core_bits.min(0xf) << 12
    }

    /// Leaf 0xB (Intel SDM vol. 2, CPUID; AMD APM vol. 3, E.3.10).
    pub fn x2apic_leaf(&self, subleaf: u32, apic_id: u32) -> CpuidResult {
        let (shift, cpus, level) = match subleaf {
            0 => (0, 1, LEVEL_THREAD),
            1 => (self.core_bits, self.vcpus.min(0xffff), LEVEL_CORE),
            _ => (0, 0, 0),
        };
        CpuidResult { eax: shift, ebx: cpus, ecx: level << 8 | subleaf & 0xff, edx: apic_id }
    }

    /// Leaf 0x8000_001E: extended APIC identifier, core identifier with one thread, node 0 of one.
    pub fn amd_leaf(&self, apic_id: u32) -> CpuidResult {
        CpuidResult { eax: apic_id, ebx: apic_id & 0xff, ecx: 0, edx: 0 }
    }

    /// Leaf 4 (`counts_cores`) or 0x8000_001D with the sharing rewritten; ends at the first absent cache.
    pub fn caches(&self, host: impl Fn(u32) -> CpuidResult, counts_cores: bool) -> [CpuidResult; CACHE_LEAVES] {
        let mut caches = [CpuidResult::default(); CACHE_LEAVES];
        for (subleaf, cache) in caches.iter_mut().enumerate() {
            let host = host(subleaf as u32);
            if host.eax & 0x1f == 0 {
                break;
            }
            let sharing = if host.eax >> 5 & 7 >= SHARED_LEVEL { self.identifiers().min(0x1000) - 1 } else { 0 };
            let cores = if counts_cores { self.identifiers().min(64) - 1 } else { 0 };
            *cache = CpuidResult { eax: host.eax & 0x3fff | sharing << 14 | cores << 26, ..host };
        }
        caches
    }

    /// APIC identifiers set aside for the cores: a power of two.
    fn identifiers(&self) -> u32 {
        1_u32.checked_shl(self.core_bits).unwrap_or(u32::MAX)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Performance counters as CPUID describes them, and a CPU that can have them.

use pmu::guest::{AMD_GENERAL, Vendor, intel_leaf};

use super::{CpuidResult, CpuidTable, EXTENDED, MOST_EXTENDED};

/// "GenuineIntel" in EBX, EDX and ECX.
const INTEL: [u32; 3] = [0x756e_6547, 0x4965_6e69, 0x6c65_746e];
/// "AuthenticAMD"
const AMD: [u32; 3] = [0x6874_7541, 0x6974_6e65, 0x444d_4163];
/// Family 6 with a model (2Bh) that no CPU has: kernels then go by the leaves, and not by their own tables of models.
const INTEL_SIGNATURE: u32 = 0x0002_06b0;
/// Family 19h, model 0.
const AMD_SIGNATURE: u32 = 0x00a0_0f00;
/// Leaf 1, ECX: PERF_CAPABILITIES exists.
const PDCM: u32 = 1 << 15;
/// Leaf 0x8000_0001, ECX: the counters have the extension's registers.
const EXTENDED_COUNTERS: u32 = 1 << 23;
const COUNTERS: u32 = 0xa;
const MONITORING: u32 = EXTENDED + 0x22;
/// Leaf 0x8000_0022, EAX: version 2.
const VERSION_2: u32 = 1;
/// Events of leaf 0xA that time does not report: all but cycles, the first.
const UNAVAILABLE: u32 = !1;

impl CpuidTable {
    /// Shows performance counters, and the vendor and family of a CPU that can have them; where the host's
    /// CPU is of this vendor, its own.
    pub fn show_counters(&mut self, vendor: Vendor) {
        let (name, signature) = match vendor {
            Vendor::Intel => (INTEL, INTEL_SIGNATURE),
            Vendor::Amd => (AMD, AMD_SIGNATURE),
        };
        let is_hosts = vendor == Vendor::Amd && super::host_is_amd_like(&self.basic[0]);
        if !is_hosts && [self.basic[0].ebx, self.basic[0].edx, self.basic[0].ecx] != name {
            let [ebx, edx, ecx] = name;
            for leaf in [&mut self.basic[0], &mut self.extended[0]] {
                *leaf = CpuidResult { eax: leaf.eax, ebx, ecx, edx };
            }
            (self.basic[1].eax, self.extended[1].eax) = (signature, signature);
        }
        match vendor {
            Vendor::Intel => {
                let (eax, ebx, edx) = intel_leaf(UNAVAILABLE);
                self.basic[COUNTERS as usize] = CpuidResult { eax, ebx, ecx: 0, edx };
                self.basic[1].ecx |= PDCM;
            }
            Vendor::Amd => {
                self.extended[0].eax = MOST_EXTENDED;
                self.extended[1].ecx |= EXTENDED_COUNTERS;
                let leaf = CpuidResult { eax: VERSION_2, ebx: AMD_GENERAL as u32, ..CpuidResult::default() };
                self.extended[(MONITORING - EXTENDED) as usize] = leaf;
            }
        }
    }

    /// Returns the vendor of the performance counters that are shown.
    pub fn counters(&self) -> Option<Vendor> {
        if self.basic[COUNTERS as usize].eax != 0 {
            Some(Vendor::Intel)
        } else if self.extended[(MONITORING - EXTENDED) as usize].eax != 0 {
            Some(Vendor::Amd)
        } else {
            None
        }
    }
}

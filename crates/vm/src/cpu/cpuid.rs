// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUID as a guest sees it: a pure function of the host's features.
//!
//! A [`CpuidTable`] is made once per guest from the host's leaves ([`CpuidSource`]) and the policy tables in
//! [`features`]: a bit is shown as the host has it, always, or never; a bit that no table names is never shown. An exit
//! then only searches it: [`CpuidTable::lookup`] indexes an array and patches the few values that change while a CPU
//! runs (its APIC identifier, OSXSAVE, the size of its extended state).
//!
//! | leaves | contents |
//! |---|---|
//! | 0–0x16 | as the host, less what is not virtualized; topology is one package of one-thread cores |
//! | 0x4000_0000–0x4000_0010 | KVM's signature: its clock, its steal time, its EOI flag, frequencies; its features for vCPUs that share CPUs ([`CpuidTable::show_paravirtual`]) |
//! | 0x8000_0000–0x8000_0022 | as the host, less what is not virtualized |
//!
//! A guest that is given performance counters sees a CPU of their vendor: see [`CpuidTable::show_counters`].
//!
//! All others read as zero (AMD APM vol. 3, appendix E; Intel SDM vol. 2, CPUID).

mod counters;
mod extended_state;
pub mod features;
mod paravirtual;
pub use extended_state::{AREA_BYTES, fitting};
mod saved;
mod source;
mod speculation;
mod topology;

pub use source::{CpuidResult, CpuidSource};
pub use speculation::Speculation;

#[cfg(test)]
mod tests;

use crate::devices::GeneralProtection;
use crate::vcpu::{cr4, efer};
use extended_state::ExtendedState;
use features::{Feature, shown};
use source::{EXTENDED, Host};
use topology::{CACHE_LEAVES, Topology};

/// Parameters of the table beside the host's features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuidConfig {
    /// vCPUs, with APIC identifiers from 0.
    pub vcpus: u32,
    /// Frequency of the guest's time stamp counter.
    pub tsc_khz: u32,
    /// Frequency that the local APIC's timer divides.
    pub apic_timer_khz: u32,
}

/// Inputs of CPUID that change while a vCPU runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CpuidView {
    /// The CPU's APIC identifier.
    pub apic_id: u32,
    /// Its CR4.
    pub cr4: u64,
    /// Its XCR0.
    pub xcr0: u64,
    /// Its local APIC is disabled (APIC_BASE): CPUID has no APIC then (AMD APM vol. 2, section 16.3.1).
    pub has_no_apic: bool,
}

const HYPERVISOR: u32 = 0x4000_0000;
/// The least number of basic leaves shown: up to the x2APIC identifier.
const LEAST_BASIC: u32 = 0xb;
const MOST_BASIC: u32 = 0x16;
/// The least number of extended leaves shown: up to the address sizes.
const LEAST_EXTENDED: u32 = EXTENDED + 8;
const MOST_EXTENDED: u32 = EXTENDED + 0x22;
/// The last that is shown to a guest without performance counters.
const MOST_USUAL_EXTENDED: u32 = EXTENDED + 0x21;
/// KVM's timing leaf.
const MOST_HYPERVISOR: u32 = HYPERVISOR + 0x10;
/// "KVMKVMKVM" in EBX, ECX and EDX.
const KVM_SIGNATURE: [u32; 3] = [0x4b4d_564b, 0x564b_4d56, 0x4d];

/// Leaf 1, EBX: brand index and CLFLUSH line size; the rest is topology.
const LEAF_1_EBX: u32 = 0xffff;
const OSXSAVE: u32 = 1 << 27;
/// Leaves 1 and 0x8000_0001, EDX.
const APIC: u32 = 1 << 9;
const EXTENDED_FEATURES: u32 = 0x8000_0001;
/// Always Running APIC Timer.
const ARAT: u32 = 1 << 2;
const INVARIANT_TSC: u32 = 1 << 8;
/// Leaf 0x8000_001A: widths of the vector units.
const VECTOR_WIDTHS: u32 = 0b111;

/// Everything CPUID shows one guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuidTable {
    basic: [CpuidResult; MOST_BASIC as usize + 1],
    extended: [CpuidResult; (MOST_EXTENDED - EXTENDED) as usize + 1],
    hypervisor: [CpuidResult; (MOST_HYPERVISOR - HYPERVISOR) as usize + 1],
    /// Leaf 4.
    caches: [CpuidResult; CACHE_LEAVES],
    /// Leaf 0x8000_001D.
    amd_caches: [CpuidResult; CACHE_LEAVES],
    /// Leaf 7.
    features: [CpuidResult; 2],
    extended_state: ExtendedState,
    topology: Topology,
}

impl CpuidTable {
    /// The table for one guest on this host.
    pub fn new(source: &impl CpuidSource, config: &CpuidConfig) -> Self {
        let host = Host::new(source);
        let topology = Topology::new(config.vcpus);
        let mut table = Self {
            basic: Default::default(),
            extended: [CpuidResult::default(); _],
            hypervisor: hypervisor_leaves(config),
            caches: topology.caches(|subleaf| host.leaf(4, subleaf), true),
            amd_caches: Default::default(),
            features: structured_features(&host),
            extended_state: ExtendedState::new(&host),
            topology,
        };
        table.fill_basic(&host);
        table.fill_extended(&host);
        table
    }

    /// Returns the guest's CPUID of a leaf. Never reads the host: fit for the exit path.
    #[inline(always)]
    pub fn lookup(&self, leaf: u32, subleaf: u32, view: &CpuidView) -> CpuidResult {
        let indexed = |leaves: &[CpuidResult], index: u32| leaves.get(index as usize).copied().unwrap_or_default();
        match leaf {
            1 => self.cpu(view),
            4 => indexed(&self.caches, subleaf),
            7 => indexed(&self.features, subleaf),
            0xb => self.topology.x2apic_leaf(subleaf, view.apic_id),
            0xd => self.extended_state.leaf(subleaf, view.xcr0),
            0..=MOST_BASIC => indexed(&self.basic, leaf),
            HYPERVISOR..=MOST_HYPERVISOR => indexed(&self.hypervisor, leaf - HYPERVISOR),
            0x8000_001d => indexed(&self.amd_caches, subleaf),
            0x8000_001e if self.shows_amd_topology() => self.topology.amd_leaf(view.apic_id),
            EXTENDED_FEATURES if view.has_no_apic => without_apic(self.extended[1]),
            EXTENDED..=MOST_EXTENDED => indexed(&self.extended, leaf - EXTENDED),
            _ => CpuidResult::default(),
        }
    }

    /// The XCR0 bits that the guest may set; zero if it has no XSAVE.
    pub fn supported_xcr0(&self) -> u64 {
        self.extended_state.supported
    }

    /// Bytes of an XSAVE area (standard format) that holds all state the guest can have.
    pub fn extended_state_bytes(&self) -> u32 {
        self.extended_state.standard_bytes(self.extended_state.supported)
    }

    /// Checks a value that the guest writes to XCR0 by XSETBV (Intel SDM vol. 1, section 13.3; AMD APM vol. 2, section
    /// 11.5.2).
    pub fn check_xcr0(&self, value: u64) -> Result<(), GeneralProtection> {
        self.extended_state.check_xcr0(value)
    }

    /// The EFER bits that the guest may set.
    pub fn supported_efer(&self) -> u64 {
        let flags = self.extended[1].edx;
        let if_shown = |bit: u32, mask: u64| if flags & (1 << bit) != 0 { mask } else { 0 };
        if_shown(features::SYSCALL, efer::SCE)
            | if_shown(features::NX, efer::NXE)
            | if_shown(features::LONG_MODE, efer::LME | efer::LMA)
            | if_shown(features::FFXSR, efer::FFXSR)
    }

    /// The registers that control speculation, as far as the guest is informed of them.
    pub fn speculation(&self) -> Speculation {
        let has = |bit: u32| self.extended[8].ebx & (1 << bit) != 0;
        let named = [(features::IBRS, 0), (features::STIBP, 1), (features::SSBD, 2), (features::PSFD, 7)];
        let bits = named.iter().filter(|(feature, _)| has(*feature)).map(|(_, bit)| 1 << bit);
        Speculation { spec_ctrl: bits.sum(), has_ibpb: has(features::IBPB) }
    }

    fn cpu(&self, view: &CpuidView) -> CpuidResult {
        let mut leaf = self.basic[1];
        leaf.ebx |= (view.apic_id & 0xff) << 24;
        if view.cr4 & cr4::OSXSAVE != 0 {
            leaf.ecx |= OSXSAVE;
        }
        if view.has_no_apic { without_apic(leaf) } else { leaf }
    }

    /// Returns whether the CPU that is shown is AMD's, or one like it.
    pub fn is_amd(&self) -> bool {
        host_is_amd_like(&self.basic[0])
    }

    /// Bits of a physical address.
    pub fn physical_bits(&self) -> u32 {
        const LEAST: u32 = 36;
        (self.extended[8].eax & 0xff).max(LEAST)
    }

    fn shows_amd_topology(&self) -> bool {
        self.extended[1].ecx & (1 << features::TOPOLOGY_EXTENSIONS) != 0
    }

    fn fill_basic(&mut self, host: &Host<'_, impl CpuidSource>) {
        let most = host.most_basic.clamp(LEAST_BASIC, MOST_BASIC);
        self.basic[0] = CpuidResult { eax: most, ..host.leaf(0, 0) };
        self.basic[1] = self.cpu_leaf(host.leaf(1, 0));
        for leaf in [2, 0x15, 0x16] {
            self.basic[leaf as usize] = host.leaf(leaf, 0);
        }
        self.basic[6].eax = ARAT;
    }

    fn cpu_leaf(&self, host: CpuidResult) -> CpuidResult {
        CpuidResult {
            eax: host.eax,
            ebx: host.ebx & LEAF_1_EBX | self.topology.logical_cpus() << 16,
            ecx: shown(features::LEAF_1_ECX, host.ecx),
            edx: shown(features::LEAF_1_EDX, host.edx) | self.topology.multi_processor_flag(features::HTT),
        }
    }

    fn fill_extended(&mut self, host: &Host<'_, impl CpuidSource>) {
        let most = host.most_extended.clamp(LEAST_EXTENDED, MOST_USUAL_EXTENDED);
        let at = |leaf: u32| (leaf - EXTENDED) as usize;
        self.extended[0] = CpuidResult { eax: most, ..host.leaf(EXTENDED, 0) };
        self.extended[1] = self.extended_cpu_leaf(host.leaf(EXTENDED + 1, 0));
        // Brand string, caches and TLBs.
        for leaf in [EXTENDED + 2, EXTENDED + 3, EXTENDED + 4, EXTENDED + 5, EXTENDED + 6, EXTENDED + 0x19] {
            self.extended[at(leaf)] = host.leaf(leaf, 0);
        }
        self.extended[7].edx = host.leaf(EXTENDED + 7, 0).edx & INVARIANT_TSC;
        let sizes = host.leaf(EXTENDED + 8, 0);
        let ebx = shown(features::LEAF_8000_0008_EBX, sizes.ebx);
        self.extended[8] = CpuidResult { eax: sizes.eax, ebx, ecx: self.topology.amd_core_count(), edx: 0 };
        self.extended[0x1a].eax = host.leaf(EXTENDED + 0x1a, 0).eax & VECTOR_WIDTHS;
        let more = host.leaf(EXTENDED + 0x21, 0);
        self.extended[0x21].eax = shown(features::LEAF_8000_0021_EAX, more.eax);
        self.extended[0x21].ecx = shown(features::LEAF_8000_0021_ECX, more.ecx);
        if self.shows_amd_topology() {
            self.amd_caches = self.topology.caches(|subleaf| host.leaf(EXTENDED + 0x1d, subleaf), false);
        }
    }

    fn extended_cpu_leaf(&self, host: CpuidResult) -> CpuidResult {
        let legacy = if host_is_amd_like(&self.basic[0]) { features::CMP_LEGACY } else { features::NO_BIT };
        CpuidResult {
            eax: host.eax,
            ebx: host.ebx,
            ecx: shown(features::LEAF_8000_0001_ECX, host.ecx) | self.topology.multi_processor_flag(legacy),
            edx: shown(features::LEAF_8000_0001_EDX, host.edx),
        }
    }
}

/// An answer of leaf 1 or leaf 0x8000_0001 while the local APIC is disabled. Intel's second leaf has no such bit,
/// whatever it is there.
fn without_apic(leaf: CpuidResult) -> CpuidResult {
    CpuidResult { edx: leaf.edx & !APIC, ..leaf }
}

/// AMD and Hygon count cores in leaf 0x8000_0008 and state this with CmpLegacy.
fn host_is_amd_like(vendor: &CpuidResult) -> bool {
    let name = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes);
    matches!(name.as_flattened(), b"AuthenticAMD" | b"HygonGenuine")
}

fn hypervisor_leaves(config: &CpuidConfig) -> [CpuidResult; (MOST_HYPERVISOR - HYPERVISOR) as usize + 1] {
    let mut leaves = [CpuidResult::default(); _];
    let [ebx, ecx, edx] = KVM_SIGNATURE;
    leaves[0] = CpuidResult { eax: MOST_HYPERVISOR, ebx, ecx, edx };
    leaves[1].eax = shown(features::KVM, 0);
    leaves[0x10] = CpuidResult { eax: config.tsc_khz, ebx: config.apic_timer_khz, ecx: 0, edx: 0 };
    leaves
}

/// Leaf 7: subleaf 0 with the number of the last subleaf, and subleaf 1 if the host has it.
fn structured_features(host: &Host<'_, impl CpuidSource>) -> [CpuidResult; 2] {
    let first = host.leaf(7, 0);
    let last = first.eax.min(1);
    let second = if last == 1 { host.leaf(7, 1) } else { CpuidResult::default() };
    let pick = |[eax, ebx, ecx, edx]: [&[Feature]; 4], host: CpuidResult| CpuidResult {
        eax: shown(eax, host.eax),
        ebx: shown(ebx, host.ebx),
        ecx: shown(ecx, host.ecx),
        edx: shown(edx, host.edx),
    };
    [CpuidResult { eax: last, ..pick(features::LEAF_7_0, first) }, pick(features::LEAF_7_1, second)]
}

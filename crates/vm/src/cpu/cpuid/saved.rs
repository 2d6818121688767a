// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's CPUID in the hand-over's words: the answers, leaf by leaf, without the policy behind them.

use handover::state::CpuidLeaf;

use super::extended_state::ExtendedState;
use super::topology::Topology;
use super::{
    CpuidResult, CpuidTable, EXTENDED, HYPERVISOR, LEAST_BASIC, LEAST_EXTENDED, MOST_BASIC, MOST_EXTENDED,
    MOST_HYPERVISOR, OSXSAVE,
};
use crate::devices::StateError;

const CACHES: u32 = 4;
const FEATURES: u32 = 7;
const EXTENDED_STATE: u32 = 0xd;
const AMD_CACHES: u32 = EXTENDED + 0x1d;
/// Leaf 1, EBX: the APIC identifier, which each CPU has its own of.
const APIC_ID: u32 = 0xff << 24;

impl CpuidTable {
    /// Shows every leaf that answers anything.
    pub fn save(&self, mut show: impl FnMut(&CpuidLeaf)) {
        let mut each = |first_leaf: u32, is_subleaf: bool, answers: &[CpuidResult]| {
            for (index, answer) in (0..).zip(answers).filter(|(_, answer)| **answer != CpuidResult::default()) {
                let (leaf, subleaf) = if is_subleaf { (first_leaf, index) } else { (first_leaf + index, 0) };
                show(&saved(leaf, subleaf, answer));
            }
        };
        each(0, false, &self.basic);
        each(HYPERVISOR, false, &self.hypervisor);
        each(EXTENDED, false, &self.extended);
        each(CACHES, true, &self.caches);
        each(FEATURES, true, &self.features);
        each(EXTENDED_STATE, true, &self.extended_state.answers());
        each(AMD_CACHES, true, &self.amd_caches);
    }

    /// The table that was saved, of a guest with so many vCPUs.
    ///
    /// # Errors
    /// [`StateError`] if no guest can have been shown this.
    pub fn restored(leaves: &[CpuidLeaf], vcpus: u32) -> Result<Self, StateError> {
        let mut state = ExtendedState::NO_ANSWERS;
        let mut table = Self {
            basic: Default::default(),
            extended: [CpuidResult::default(); _],
            hypervisor: [CpuidResult::default(); _],
            caches: Default::default(),
            amd_caches: Default::default(),
            features: Default::default(),
            extended_state: ExtendedState::from_answers(&state)?,
            topology: Topology::new(vcpus),
        };
        for leaf in leaves {
            let (number, subleaf) = (leaf.leaf.get(), leaf.subleaf.get());
            let place = match number {
                EXTENDED_STATE => state.get_mut(subleaf as usize),
                _ => table.place(number, subleaf),
            };
            let place = place.ok_or(refused("a leaf that is not known"))?;
            if *place != CpuidResult::default() {
                return Err(refused("a leaf is there twice"));
            }
            *place = answer(leaf);
        }
        table.extended_state = ExtendedState::from_answers(&state)?;
        table.check()
    }

    fn place(&mut self, leaf: u32, subleaf: u32) -> Option<&mut CpuidResult> {
        match (leaf, subleaf) {
            (CACHES, _) => self.caches.get_mut(subleaf as usize),
            (FEATURES, _) => self.features.get_mut(subleaf as usize),
            (AMD_CACHES, _) => self.amd_caches.get_mut(subleaf as usize),
            (0..=MOST_BASIC, 0) => self.basic.get_mut(leaf as usize),
            (HYPERVISOR..=MOST_HYPERVISOR, 0) => self.hypervisor.get_mut((leaf - HYPERVISOR) as usize),
            (EXTENDED..=MOST_EXTENDED, 0) => self.extended.get_mut((leaf - EXTENDED) as usize),
            _ => None,
        }
    }

    /// Refuses a table whose last leaf is unknown, or that holds bits that each CPU answers for itself (APIC ID,
    /// OSXSAVE).
    fn check(self) -> Result<Self, StateError> {
        let has_ends = (LEAST_BASIC..=MOST_BASIC).contains(&self.basic[0].eax)
            && (LEAST_EXTENDED..=MOST_EXTENDED).contains(&self.extended[0].eax);
        let has_own = self.basic[1].ebx & APIC_ID != 0 || self.basic[1].ecx & OSXSAVE != 0;
        match (has_ends, has_own) {
            (false, _) => Err(refused("the last leaf is not one that is known")),
            (true, true) => Err(refused("it holds what each CPU answers for itself")),
            (true, false) => Ok(self),
        }
    }
}

fn refused(reason: &'static str) -> StateError {
    StateError { field: "policy.cpuid", reason }
}

fn saved(leaf: u32, subleaf: u32, answer: &CpuidResult) -> CpuidLeaf {
    let CpuidResult { eax, ebx, ecx, edx } = *answer;
    let [leaf, subleaf, eax, ebx, ecx, edx] = [leaf, subleaf, eax, ebx, ecx, edx].map(Into::into);
    CpuidLeaf { leaf, subleaf, eax, ebx, ecx, edx }
}

fn answer(leaf: &CpuidLeaf) -> CpuidResult {
    CpuidResult { eax: leaf.eax.get(), ebx: leaf.ebx.get(), ecx: leaf.ecx.get(), edx: leaf.edx.get() }
}

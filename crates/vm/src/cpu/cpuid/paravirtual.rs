// SPDX-License-Identifier: MIT OR Apache-2.0
//! KVM's features for vCPUs that share CPUs, of which a guest is shown all or none.

use super::CpuidTable;
use super::features::{KVM_PARAVIRTUAL, shown};

impl CpuidTable {
    /// Shows KVM's features for vCPUs that share CPUs.
    pub fn show_paravirtual(&mut self) {
        self.hypervisor[1].eax |= shown(KVM_PARAVIRTUAL, 0);
    }

    /// Returns whether all of those are shown.
    pub fn is_paravirtual(&self) -> bool {
        let all = shown(KVM_PARAVIRTUAL, 0);
        self.hypervisor[1].eax & all == all
    }
}

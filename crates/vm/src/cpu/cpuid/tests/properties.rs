// SPDX-License-Identifier: MIT OR Apache-2.0
//! For every host and guest, the table answers, and shows nothing that the policy hides.

use proptest::prelude::*;

use crate::cpu::cpuid::features::{self, Feature, Show};
use crate::cpu::cpuid::{CpuidConfig, CpuidResult, CpuidTable, CpuidView};

/// A host with noise in its leaves, the same noise each time.
fn noise(seed: u64) -> impl Fn(u32, u32) -> CpuidResult {
    move |leaf, subleaf| {
        let mixed = |lane: u64| {
            let value = (u64::from(leaf) << 32 | u64::from(subleaf)) ^ seed.rotate_left(lane as u32 * 16);
            (value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 29) as u32
        };
        CpuidResult { eax: mixed(0), ebx: mixed(1), ecx: mixed(2), edx: mixed(3) }
    }
}

fn hidden(policy: &[Feature]) -> u32 {
    !policy.iter().filter(|feature| feature.2 != Show::Never).fold(0, |bits, &(bit, ..)| bits | 1 << bit)
}

proptest! {
    #[test]
    fn any_leaf_of_any_host_has_an_answer(
        seed: u64, vcpus: u32, tsc_khz: u32,
        leaf in prop_oneof![0..0x40_u32, 0x4000_0000..0x4000_0200_u32, 0x8000_0000..0x8000_0040_u32, any::<u32>()],
        subleaf in prop_oneof![0..16_u32, any::<u32>()],
        apic_id: u32, cr4: u64, xcr0: u64,
    ) {
        let table = CpuidTable::new(&noise(seed), &CpuidConfig { vcpus, tsc_khz, apic_timer_khz: 1 });
        let view = CpuidView { apic_id, cr4, xcr0, has_no_apic: false };
        let first = table.lookup(leaf, subleaf, &view);
        prop_assert_eq!(first, table.lookup(leaf, subleaf, &view));
        let _ = table.check_xcr0(xcr0);
        prop_assert!(table.extended_state_bytes() >= 576);
    }

    #[test]
    fn hidden_bits_stay_hidden_on_any_host(seed: u64, vcpus in 1..300_u32) {
        let table = CpuidTable::new(&noise(seed), &CpuidConfig { vcpus, tsc_khz: 1, apic_timer_khz: 1 });
        let shown = |leaf, subleaf| table.lookup(leaf, subleaf, &CpuidView::default());
        prop_assert_eq!(shown(1, 0).ecx & hidden(features::LEAF_1_ECX), 0);
        prop_assert_eq!(shown(7, 0).ebx & hidden(features::LEAF_7_0[1]), 0);
        prop_assert_eq!(shown(7, 0).ecx & hidden(features::LEAF_7_0[2]), 0);
        prop_assert_eq!(shown(7, 0).edx & hidden(features::LEAF_7_0[3]), 0);
        prop_assert_eq!(shown(0x8000_0001, 0).ecx & hidden(features::LEAF_8000_0001_ECX) & !2, 0);
        prop_assert_eq!(shown(0x8000_0008, 0).ebx & hidden(features::LEAF_8000_0008_EBX), 0);
        prop_assert_eq!(shown(0xd, 1).eax & hidden(features::LEAF_D_1_EAX), 0);
    }
}

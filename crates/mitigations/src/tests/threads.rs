// SPDX-License-Identifier: MIT OR Apache-2.0
use std::vec::Vec;

use proptest::prelude::*;

use crate::smt::{Smt, is_first_of_its_core, thread_bits};

fn first(apic_ids: &[u32], bits: u32) -> Vec<usize> {
    (0..apic_ids.len()).filter(|index| is_first_of_its_core(apic_ids, *index, bits)).collect()
}

#[test]
fn a_cores_threads_differ_in_the_low_bits_of_their_identifiers() {
    assert_eq!(thread_bits(Some((1, 0x100)), 0), 1);
    assert_eq!(thread_bits(Some((0, 0x100)), 1), 0);
    // No thread level, or no leaf 0Bh: leaf 8000_001Eh.
    assert_eq!(thread_bits(Some((4, 0x201)), 1), 1);
    assert_eq!(thread_bits(None, 0), 0);
    assert_eq!(thread_bits(None, 1), 1);
    assert_eq!(thread_bits(None, 3), 2);
}

#[test]
fn one_thread_of_each_core_is_its_first() {
    assert_eq!(first(&[0, 1, 2, 3], 0), [0, 1, 2, 3]);
    assert_eq!(first(&[0, 1, 2, 3], 1), [0, 2]);
    // Firmware lists first threads first, or boots on a second one, or hides one.
    assert_eq!(first(&[0, 2, 1, 3], 1), [0, 1]);
    assert_eq!(first(&[3, 0, 1, 2], 1), [0, 1]);
    assert_eq!(first(&[0, 5], 1), [0, 1]);
}

#[test]
fn all_threads_run_guests_only_when_asked_or_with_mitigations_off() {
    assert!(!Smt::Auto.uses_all_threads(true));
    assert!(Smt::Auto.uses_all_threads(false));
    assert!(Smt::On.uses_all_threads(true));
    assert!(!Smt::Off.uses_all_threads(false));
}

proptest! {
    #[test]
    fn no_two_chosen_threads_share_a_core(ids in prop::collection::vec(any::<u32>(), 1..40), bits in 0_u32..40) {
        let chosen = first(&ids, bits);
        let cores: Vec<u32> = chosen.iter().map(|index| ids[*index].checked_shr(bits).unwrap_or(0)).collect();
        for (place, core) in cores.iter().enumerate() {
            prop_assert!(!cores[..place].contains(core));
        }
        prop_assert_eq!(chosen[0], 0);
        for id in &ids {
            prop_assert!(cores.contains(&id.checked_shr(bits).unwrap_or(0)));
        }
    }
}

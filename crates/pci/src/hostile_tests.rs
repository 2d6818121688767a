// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions that lie about their capabilities, never finish a reset, or vanish at any moment: everything ends, and no
//! register past the function's own configuration space is accessed.

use std::vec::Vec;

use proptest::prelude::*;

use crate::capability::Capability;
use crate::testing::{Chip, Machine};
use crate::{Bdf, Filter, Function, Scan, Step, message, reset};

const PLACE: &str = "00:03.0";
/// Reads and writes of a reset: checks at intervals that grow to 32 ms, and what is saved and restored.
const MOST_OF_A_RESET: usize = 128;
/// Reads and writes of one function in a survey; a thousand more where it is not ready.
const MOST_OF_A_SURVEY: usize = 59 + 1_001;

fn place() -> Bdf {
    PLACE.parse().unwrap()
}

fn any_register() -> impl Strategy<Value = u8> {
    prop_oneof![4 => (0x10u8..0x40).prop_map(|word| word * 4), 1 => any::<u8>()]
}

/// Returns a capability: its place, its kind, the place of the next one, its flags and the words behind.
fn any_capability() -> impl Strategy<Value = (u8, u8, u8, u16, [u32; 3])> {
    let id = prop_oneof![
        Just(Capability::POWER_MANAGEMENT),
        Just(Capability::MSI),
        Just(Capability::MSI_X),
        Just(Capability::EXPRESS),
        Just(0x13),
        any::<u8>()
    ];
    let word = prop_oneof![Just(0u32), Just(u32::MAX), Just(1 << 28), any::<u32>()];
    (any_register(), id, any_register(), any::<u16>(), [word.clone(), word.clone(), word])
}

/// Returns a word among a function's extended registers: often a capability's head, which leads anywhere.
fn any_extended() -> impl Strategy<Value = u32> {
    let head = (prop_oneof![Just(0x000du32), any::<u16>().prop_map(u32::from)], 0x100u32..0x1000);
    prop_oneof![3 => head.prop_map(|(id, next)| next << 20 | 1 << 16 | id), 1 => any::<u32>()]
}

fn any_chip() -> impl Strategy<Value = Chip> {
    let resets = prop::option::of((any_register(), prop_oneof![Just(1u16 << 15), Just(1), Just(3)]));
    let patience = prop_oneof![4 => Just(0u32), 2 => 1u32..3_000, 1 => Just(u32::MAX)];
    let list = prop::collection::vec(any_capability(), 0..8);
    let extended = prop::collection::btree_map((0x40u16..0x400).prop_map(|word| word * 4), any_extended(), 0..40);
    let vanishes_after = prop_oneof![2 => Just(u32::MAX), 1 => 0u32..120];
    (list, any_register(), resets, patience, extended, vanishes_after).prop_map(
        |(list, first, resets, patience, extended, vanishes_after)| {
            let extended = [(0x100, 0x0001_000d)].into_iter().chain(extended).collect();
            let mut chip = Chip { extended, ..Chip::new(0x1b36, 0x0010, 0x0108, 0) };
            (chip.words[1], chip.words[13]) = (0x0010_0007, first.into());
            for (register, id, next, flags, behind) in list {
                let words = [u32::from(flags) << 16 | u32::from(next) << 8 | u32::from(id)].into_iter().chain(behind);
                let places = chip.words[usize::from(register / 4)..].iter_mut();
                places.zip(words).for_each(|(place, word)| *place = word);
            }
            chip.writable[16..].fill(u32::MAX);
            chip.reset_by = resets.map(|(register, bit)| (u16::from(register & !3) + 8, bit));
            (chip.not_ready_after_reset, chip.vanishes_after) = (patience, vanishes_after);
            chip
        },
    )
}

fn survey(machine: &mut Machine) -> Vec<Function> {
    let mut found = Vec::new();
    let mut scan = Scan::new(&Filter::All, 0, [0]);
    while scan.step(machine, &mut |function| found.push(function)) == Step::More {}
    found
}

/// Accesses to the function, none of which is past its configuration space.
fn accesses(machine: &mut Machine) -> Result<usize, TestCaseError> {
    let written = machine.writes.drain(..).map(|(at, register, _)| (at, register));
    let all: Vec<(Bdf, u16)> = machine.log.drain(..).chain(written).filter(|(at, _)| *at == place()).collect();
    let past = all.iter().find(|(_, register)| *register >= 0x1000);
    prop_assert!(past.is_none(), "register {past:x?} is accessed");
    Ok(all.len())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn whatever_a_function_states_and_does_everything_ends_within_it(
        chip in any_chip(),
        leaves_after in prop_oneof![Just(u32::MAX), 0u32..40],
        vectors in 0u32..6,
    ) {
        let mut machine = Machine::with([(PLACE, chip)]);
        let found = survey(&mut machine);
        prop_assert!(accesses(&mut machine)? <= MOST_OF_A_SURVEY);
        let capabilities = found.first().map_or(&[][..], |function| &function.capabilities);
        if let Some(chip) = machine.chips.get_mut(&place()) {
            chip.vanishes_after = chip.vanishes_after.min(leaves_after);
        }
        if let Some(way) = reset::way(&mut machine, place(), capabilities) {
            let _ = reset::reset_in_place(&mut machine, place(), way, capabilities);
            prop_assert!(accesses(&mut machine)? <= MOST_OF_A_RESET);
            prop_assert!(machine.pauses <= 1_200_000, "{} us", machine.pauses);
        }
        let at = |id| capabilities.iter().find(|known| known.id == id).map(|known| u16::from(known.register));
        let (msi, msix) = (at(Capability::MSI), at(Capability::MSI_X));
        msi.into_iter().for_each(|at| message::enable_msi(&mut machine, place(), at, (0xfee0_0000, 1), 1 << vectors));
        msix.into_iter().for_each(|at| message::enable_msix(&mut machine, place(), at, || {}));
        message::disable(&mut machine, place(), msi, msix);
        reset::stop_mastering(&mut machine, place());
        prop_assert!(accesses(&mut machine)? < 32);
    }
}

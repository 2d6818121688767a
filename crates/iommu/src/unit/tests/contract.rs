// SPDX-License-Identifier: MIT OR Apache-2.0
//! The contract that the owner of a unit relies on, for both vendors.

use units::{GIB, PAGE_BYTES as PAGE, PhysAddr};

use super::machine::*;
use crate::amd::tests::hardware::ALL_FEATURES;
use crate::intel::model::Features;
use crate::{DomainId, FIRMWARE, Interrupt, Memory, Problem, SPARES, Signal};

const GUEST: DomainId = DomainId(2);
const NETWORK: u16 = 0x108;

/// Frames that tables take while `act` runs.
fn frames_of<M: Model>(image: &mut Image<M>, act: impl FnOnce(&mut Image<M>)) -> usize {
    let left = |image: &mut Image<M>| {
        let frames = image.frames_left();
        frames.iter().for_each(|frame| image.memory.free_piece(*frame, PAGE));
        frames.len()
    };
    let before = left(image);
    act(image);
    before - left(image)
}

fn map_four_gib<M: Model>(image: &mut Image<M>) {
    let Image { memory, unit, .. } = image;
    let mut domain = unit.create_domain(memory, GUEST).unwrap();
    unit.map(memory, &mut domain, 0, PhysAddr(4 * GIB), 4 * GIB, true).unwrap();
}

#[test]
fn memory_is_mapped_with_the_largest_pages_of_the_unit() {
    assert_eq!(frames_of(&mut amd(ALL_FEATURES), map_four_gib), 2, "a root and 1 GiB pages");
    assert_eq!(frames_of(&mut intel(Features::default()), map_four_gib), 2);
    let small = Features { has_large_pages: false, ..Features::default() };
    let mut image = intel(small);
    let Image { memory, unit, .. } = &mut image;
    let mut domain = unit.create_domain(memory, GUEST).unwrap();
    let refused = unit.map(memory, &mut domain, 0, PhysAddr(4 * GIB), 4 * GIB, true);
    assert_eq!(refused, Err(Problem::OutOfMemory), "2048 tables of 4 KiB pages do not fit");
}

#[test]
fn numbers_of_the_host_and_those_that_the_unit_lacks_are_refused() {
    let (mut amd, mut intel) = (amd(ALL_FEATURES), intel(Features::default()));
    for id in [DomainId(0), FIRMWARE] {
        assert!(matches!(amd.unit.create_domain(&mut amd.memory, id), Err(Problem::Lacks { .. })));
        assert!(matches!(intel.unit.create_domain(&mut intel.memory, id), Err(Problem::Lacks { .. })));
    }
    assert!(matches!(intel.unit.create_domain(&mut intel.memory, DomainId(256)), Err(Problem::Lacks { .. })));
}

#[test]
fn a_domain_of_another_vendor_is_refused() {
    let (mut amd, mut intel) = (amd(ALL_FEATURES), intel(Features::default()));
    let mut foreign = amd.unit.create_domain(&mut amd.memory, GUEST).unwrap();
    let Image { memory, unit, .. } = &mut intel;
    let refused = |answer| matches!(answer, Err(Problem::Lacks { .. }));
    assert!(refused(unit.map(memory, &mut foreign, 0, PhysAddr(0), PAGE, true)));
    assert!(refused(unit.attach(memory, function(NETWORK), &foreign)));
    assert!(refused(unit.free_domain(memory, foreign)));
}

fn keeps_tables_of_a_dead_unit<M: Model>(mut image: Image<M>) {
    let kept = frames_of(&mut image, |image| {
        let Image { memory, unit, machine, .. } = image;
        let mut domain = unit.create_domain(memory, GUEST).unwrap();
        unit.map(memory, &mut domain, 0, PhysAddr(GIB), PAGE, true).unwrap();
        machine.kill();
        assert!(matches!(unit.free_domain(memory, domain), Err(Problem::NoAnswer { .. })));
    });
    assert_eq!(kept, 4, "four levels of tables");
}

#[test]
fn tables_are_not_given_back_while_the_unit_does_not_answer() {
    keeps_tables_of_a_dead_unit(amd(ALL_FEATURES));
    keeps_tables_of_a_dead_unit(intel(Features::default()));
}

fn keeps_tables_that_a_refused_map_freed<M: Model>(mut image: Image<M>) {
    let Image { memory, unit, .. } = &mut image;
    let mut domain = unit.create_domain(memory, GUEST).unwrap();
    unit.map(memory, &mut domain, 0, PhysAddr(GIB), PAGE, true).unwrap();
    unit.attach(memory, function(NETWORK), &domain).unwrap();
    let mut frames = image.frames_left();
    let spared = frames.split_off(frames.len() - 1);
    spared.iter().for_each(|frame| image.memory.free_piece(*frame, PAGE));
    image.machine.kill();
    let Image { memory, unit, .. } = &mut image;
    let refused = unit.map(memory, &mut domain, GIB, PhysAddr(GIB), PAGE, true);
    assert!(matches!(refused, Err(Problem::NoAnswer { .. })), "{refused:?}");
    assert!(image.frames_left().is_empty(), "the unit may have cached the table meanwhile");
}

#[test]
fn a_table_that_a_refused_map_freed_is_not_reused_while_the_unit_does_not_answer() {
    keeps_tables_that_a_refused_map_freed(amd(ALL_FEATURES));
    keeps_tables_that_a_refused_map_freed(intel(Features::default()));
}

#[test]
fn blocked_functions_send_nothing_even_where_the_unit_does_not_answer() {
    let mut image = amd(ALL_FEATURES);
    let Image { memory, unit, machine, .. } = &mut image;
    unit.open_interrupts(memory, function(NETWORK), 1).unwrap();
    let interrupt = Interrupt { vector: 0x30, destination: 1, is_level: false };
    unit.set_interrupt(memory, function(NETWORK), 0, Some(interrupt)).unwrap();
    machine.kill();
    assert!(unit.block(memory, function(NETWORK)).is_err());
    assert_eq!(image.sent_by(NETWORK), [], "nothing was cached yet");
}

#[test]
fn an_io_apics_spare_entries_are_its_own_where_interrupts_are_remapped() {
    let apic = (function(IO_APIC), INPUTS);
    let mut amd = amd(ALL_FEATURES);
    assert!(amd.unit.remaps_interrupts());
    assert_eq!(amd.unit.spare(&mut amd.memory, apic, 0), Ok(None));
    let mut image = intel(Features::default());
    let Image { memory, unit, machine, .. } = &mut image;
    assert!(unit.remaps_interrupts());
    let nmi = Signal::Nmi { destination: 4 };
    let entry = unit.redirect(memory, apic, INPUTS - 1, nmi, false).unwrap();
    for number in 0..SPARES {
        let write = unit.spare(memory, apic, number).unwrap().unwrap().send(nmi, false);
        assert_ne!(write.redirection, entry);
        assert_eq!(Model::input(machine, write.redirection), None);
        memory.write_word(write.at, write.word);
        assert_eq!(Model::input(machine, write.redirection), Some((2, 4)));
    }
    assert_eq!(Model::input(machine, entry), Some((2, 4)));
    image.unit.pass_interrupts(&mut image.memory).unwrap();
    assert!(!image.unit.remaps_interrupts());
    assert_eq!(image.unit.spare(&mut image.memory, apic, 0), Ok(None));
}

#[test]
fn a_top_table_that_does_not_name_its_root_is_not_adopted() {
    let short = Features { has_four_levels: false, ..Features::default() };
    let mut image = intel(short);
    let Image { memory, unit, .. } = &mut image;
    let domain = unit.create_domain(memory, GUEST).unwrap();
    unit.attach(memory, function(NETWORK), &domain).unwrap();
    let crate::GuestDomain::Intel(intel) = &domain else { unreachable!() };
    memory.write_word(intel.root(), 0);
    assert!(matches!(unit.attached(memory, function(NETWORK)), Err(Problem::NotAdopted { .. })));
}

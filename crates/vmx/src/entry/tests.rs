// SPDX-License-Identifier: MIT OR Apache-2.0
//! Valid states of every mode, and each rule's violation.

mod broken_controls;
mod broken_guest;
mod broken_host;
mod broken_segments;
mod valid;

use std::string::ToString;
use std::vec::Vec;

use proptest::prelude::*;
use vm::vcpu::{AccessRights, Segment};

use super::*;
use crate::control::{Control, Controls};
use crate::testing::{Cpu, Image};
use valid::{Mode, bounds, state};

/// A change to a valid state in IA-32e mode, and the rule that it violates.
type Broken = (fn(&mut State), &'static str, &'static str, &'static str);

/// Violations of the rules for the host, the controls and the guest.
fn all_broken() -> impl Iterator<Item = Broken> {
    let (controls, host) = (broken_controls::ALL.iter(), broken_host::ALL.iter());
    let (guest, segments) = (broken_guest::ALL.iter(), broken_segments::ALL.iter());
    controls.chain(host).chain(guest).chain(segments).copied()
}

fn allowed() -> Controls {
    bounds().capabilities.allowed_controls()
}

#[test]
fn a_rule_is_reported_in_words_with_its_section() {
    let mut state = Mode::Long.plain();
    state.segments[2].rights |= 1 << 9;
    let rule = check(&state, &bounds()).unwrap_err();
    assert_eq!(rule.to_string(), "SS has a reserved access right (SDM vol. 3, section 27.3.1.2)");
}

#[test]
fn no_two_violations_are_of_one_rule_and_every_section_has_some() {
    let mut rules: Vec<_> = all_broken().map(|(_, section, item, violated)| (section, item, violated)).collect();
    let count = rules.len();
    rules.sort_unstable();
    rules.dedup();
    assert_eq!(rules.len(), count);
    let sections = ["27.2.1.1", "27.2.1.2", "27.2.1.3", "27.2.2", "27.2.3", "27.2.4", "27.3.1.1", "27.3.1.2"];
    for section in sections.into_iter().chain(["27.3.1.3", "27.3.1.4", "27.3.1.5", "27.3.1.6"]) {
        assert!(rules.iter().any(|(found, ..)| *found == section), "{section}");
    }
}

#[test]
fn controls_host_and_guest_are_checked_apart() {
    let mut state = Mode::Long.plain();
    state.controls.vpid = 0;
    state.host.cs = 0;
    state.guest.rflags = 0;
    let sections = [check_controls, check_host, check_guest].map(|check| check(&state, &bounds()).unwrap_err().section);
    assert_eq!(sections, ["27.2.1.1", "27.2.3", "27.3.1.4"]);
}

#[test]
fn fields_that_a_cpu_does_not_have_are_not_touched() {
    let plain = Controls::NONE;
    let mut vmcs = Image::new(plain);
    Mode::Long.plain().store(&mut vmcs, plain);
    let loaded = State::load(&vmcs, plain);
    assert_eq!((loaded.controls.ept_pointer, loaded.controls.vpid, loaded.guest.efer), (0, 0, 0));
    assert_eq!(loaded.guest.rip, Mode::Long.plain().guest.rip);
}

#[test]
fn cpus_differ_in_what_they_check() {
    let refused = |cpu: &Cpu, state: &State| {
        let bounds = Bounds { capabilities: cpu.read().unwrap(), ..bounds() };
        check(state, &bounds).err().map(|rule| rule.item)
    };
    let mut state = Mode::Long.plain();
    state.controls.interruption = 0x8000_0480;
    let (mut cpu, complete) = (Cpu::complete(), Cpu::complete());
    assert_eq!(refused(&cpu, &state), None, "a length of 0");
    cpu.set(0x485, cpu.get(0x485) & !(1 << 30));
    assert_eq!(refused(&cpu, &state), Some("VM-entry instruction length"));

    state.controls.interruption = 0x8000_0306;
    state.controls.interruption |= 1 << 11;
    assert_eq!(refused(&complete, &state), Some("VM-entry interruption information"), "#UD has no error code");
    let mut cpu = Cpu::complete();
    cpu.set(0x480, cpu.get(0x480) | 1 << 56);
    assert_eq!(refused(&cpu, &state), None, "but it may have one here");

    let mut cpu = Cpu::complete();
    cpu.set(0x480, cpu.get(0x480) | 1 << 48);
    state.controls.msr_bitmap = 1 << 32;
    assert_eq!(refused(&complete, &state), Some("VM-entry interruption information"));
    assert_eq!(refused(&cpu, &state), Some("MSR-bitmap address"), "addresses of 32 bits");

    let mut state = Mode::Long.plain();
    state.controls.ept_pointer |= 1 << 6;
    assert_eq!(refused(&complete, &state), None, "accessed and dirty flags");
    let mut cpu = Cpu::complete();
    cpu.set(0x48c, cpu.get(0x48c) & !(1 << 21));
    assert_eq!(refused(&cpu, &state), Some("EPTP"));

    let mut state = Mode::Long.plain();
    state.guest.activity = 1;
    let mut cpu = Cpu::complete();
    assert_eq!(refused(&cpu, &state), None);
    cpu.set(0x485, cpu.get(0x485) & !(1 << 6));
    assert_eq!(refused(&cpu, &state), Some("activity state"));
}

#[test]
fn segments_are_converted_there_and_back() {
    for rights in [AccessRights::CODE_64, AccessRights::DATA_16, AccessRights::BUSY_TASK, AccessRights::empty()] {
        let segment = Segment { selector: 8, rights, limit: 0xffff, base: 0x1000 };
        let stored = GuestSegment::from(segment);
        assert_eq!(stored.is_usable(), rights.contains(AccessRights::PRESENT));
        assert_eq!(Segment::from(stored), segment);
    }
    let unusable = GuestSegment { rights: 0x1_0093, ..GuestSegment::default() };
    assert!(!Segment::from(unusable).rights.contains(AccessRights::PRESENT));
}

#[test]
fn each_plain_state_is_valid() {
    for mode in Mode::ALL {
        assert_eq!(check(&mode.plain(), &bounds()), Ok(()), "{mode:?}");
    }
}

proptest! {
    #[test]
    fn valid_states_enter_and_come_back_equal(state in state(&Mode::ALL)) {
        prop_assert_eq!(check(&state, &bounds()), Ok(()));
        let mut vmcs = Image::new(allowed());
        state.store(&mut vmcs, allowed());
        prop_assert_eq!(State::load(&vmcs, allowed()), state);
    }

    #[test]
    fn a_valid_state_with_one_thing_broken_fails_by_the_rule_for_it(
        valid in state(&[Mode::Long]),
        at in 0..all_broken().count(),
    ) {
        let (spoil, section, item, violated) = all_broken().nth(at).unwrap();
        let mut state = valid;
        spoil(&mut state);
        prop_assert_eq!(check(&state, &bounds()), Err(Rule { section, item, violated }));
    }

    #[test]
    fn every_field_of_any_value_is_checked(
        at in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>()), 1..6),
        valid in state(&Mode::ALL),
    ) {
        let mut vmcs = Image::new(allowed());
        valid.store(&mut vmcs, allowed());
        at.iter().for_each(|(index, value)| vmcs.spoil(*index, *value));
        let _ = check(&State::load(&vmcs, allowed()), &bounds());
    }
}

#[test]
fn each_thing_broken_fails_by_the_rule_for_it() {
    for (spoil, section, item, violated) in all_broken() {
        let mut state = Mode::Long.plain();
        spoil(&mut state);
        assert_eq!(check(&state, &bounds()), Err(Rule { section, item, violated }), "{item} {violated}");
    }
}

/// Clears a control.
fn clear(state: &mut State, control: Control) {
    state.controls.take(state.controls.set().without(control));
}

/// Sets a control.
fn set(state: &mut State, control: Control) {
    state.controls.take(state.controls.set().with(control));
}

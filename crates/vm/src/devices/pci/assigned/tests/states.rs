// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of a function that is handed over to the next image.

use std::vec;

use handover::state::{self, DeviceKind};

use super::properties::{any_step, take};
use super::*;
use crate::devices::pci::{Bar, CONFIG_BYTES};

/// Where the function's own state begins: behind registers, MSI-X table and pending bits.
const OWN: usize = 8 + CONFIG_BYTES + 40 * 16 + 8;

fn saved(lab: &Lab) -> Vec<Vec<u8>> {
    let of = |device: crate::devices::bus::Found<'_>| {
        let device = device.lock();
        let mut bytes = vec![0; device.state_bytes()];
        let used = device.save(&mut bytes).expect("there is room");
        bytes.truncate(used);
        bytes
    };
    lab.bus.devices().map(of).collect()
}

/// The next image: the same hardware, address space made again, functions built from their saved states alone.
fn restored(lab: &Lab, states: &[Vec<u8>]) -> Result<Lab, StateError> {
    let mut next = Lab::bare();
    for (number, function) in (0..).zip(&lab.functions) {
        let mut function = function.lock();
        let state = &states[states.len() - lab.functions.len() + number as usize];
        let description = Description::from_saved(state.get(OWN..).unwrap_or_default())?;
        let mut physical = FakePhysical::new(number, &next.space);
        let old = function.physical();
        (physical.config, physical.is_sealed, physical.is_gone) = (old.config, true, old.is_gone);
        (physical.registers, physical.reads) = (old.registers.clone(), old.reads);
        if Assigned::in_slot(Slot(8), description, FakePhysical::new(number, &next.space)).is_none() {
            return Err(StateError { field: "tests", reason: "it was checked" });
        }
        if !next.try_attach(description, physical) {
            return Err(StateError { field: "tests", reason: "another function's line is at the same pin" });
        }
    }
    for (device, state) in next.bus.devices().zip(states) {
        device.lock().restore(1, state)?;
    }
    let touched = next.functions.iter().map(|function| function.lock().physical().requests).sum::<u32>();
    assert_eq!(touched, 0, "the hardware is not accessed");
    next.bus.place_functions();
    Ok(next)
}

fn refused(change: impl FnOnce(&mut Vec<u8>)) -> &'static str {
    let lab = Lab::new(1);
    let mut states = saved(&lab);
    change(states.last_mut().unwrap());
    restored(&lab, &states).map(drop).expect_err("it is refused").field
}

#[test]
fn a_state_that_no_function_can_be_in_is_refused() {
    const ASSIGNED: &str = "pci.functions.assigned";
    let own = |at: usize, value: u8| refused(|state| state[OWN + at] = value);
    let at = core::mem::offset_of!(state::AssignedFunction, bar_addresses);
    assert_eq!(own(at, 1), ASSIGNED, "a range that is not aligned");
    assert_eq!(own(core::mem::offset_of!(state::AssignedFunction, bar_kinds), 9), ASSIGNED);
    assert_eq!(own(core::mem::offset_of!(state::AssignedFunction, bar_kinds), 0), ASSIGNED);
    assert_eq!(own(core::mem::offset_of!(state::AssignedFunction, flags) + 3, 1), ASSIGNED);
    assert_eq!(own(core::mem::offset_of!(state::AssignedFunction, msi), 9), ASSIGNED);
    assert_eq!(own(core::mem::offset_of!(state::AssignedFunction, msix_table) + 1, 0x40), ASSIGNED);
    assert_eq!(own(core::mem::offset_of!(state::AssignedFunction, passed), 1), ASSIGNED);
    assert_eq!(own(core::mem::offset_of!(state::AssignedFunction, phase), 3), ASSIGNED);
    assert_eq!(own(core::mem::offset_of!(state::AssignedFunction, interrupts), 9), ASSIGNED);
    assert_eq!(own(size_of::<state::AssignedFunction>() + 7, 1), ASSIGNED, "a vector that is not there is open");
    assert_eq!(refused(|state| _ = state.pop()), ASSIGNED);
    assert_eq!(refused(|state| state.push(0)), ASSIGNED);
    assert_eq!(refused(|state| state.truncate(OWN + 8)), ASSIGNED);
}

#[test]
fn an_interrupt_that_is_received_nowhere_is_refused() {
    let mut lab = Lab::new(1);
    lab.enable_at(0, HIGH);
    lab.set_config(0, MSI, 1 << 16);
    let states = saved(&lab);
    assert_eq!(lab.functions[0].lock().interrupts(), Interrupts::Msi { vectors: 1 });
    assert!(restored(&lab, &states).is_ok());
    // The line's word is the last one.
    let route = states.last().unwrap().len() - 16;
    for (at, value) in [(route, 0x4f), (route + 5, 1), (route + 7, 1)] {
        let mut states = states.clone();
        states.last_mut().unwrap()[at] = value;
        let error = restored(&lab, &states).map(drop).expect_err("it is refused");
        assert_eq!(error.reason, "an interrupt is received where none can be");
    }
    let mut states = states;
    states.last_mut().unwrap().truncate(route);
    let error = restored(&lab, &states).map(drop).expect_err("it is refused");
    assert_eq!(error.reason, "its state has another length");
}

/// An image that knows no lines does not know the kind, and is refused while the guest runs.
#[test]
fn an_asserted_line_is_handed_over_with_its_route() {
    let mut lab = Lab::new(2);
    let kind = |lab: &Lab, function: usize| lab.functions[function].lock().tag().kind;
    let kinds = [DeviceKind::LineFunction, DeviceKind::AssignedFunction].map(|kind| kind as u32);
    assert_eq!([kind(&lab, 0), kind(&lab, 1)], kinds);
    lab.set_config(0, 4, 0b110);
    lab.with(0, |function, outputs| function.raise(Raised::Line, outputs));
    let mut next = restored(&lab, &saved(&lab)).expect("it is good");
    let route = Route { destination: 0, vector: 0x60, gsi: 16 };
    assert_eq!(next.physical(0, |p| p.routes.get(&LINE).copied()), Some(route));
    assert_eq!((next.physical(0, |p| p.interrupts), next.config(0, 4) >> 16 & 8), (Interrupts::Line, 8));
    next.with(0, |function, outputs| function.raise(Raised::Line, outputs));
    next.functions[0].lock().end_line(&mut next.world.outputs);
    assert_eq!((next.physical(0, |p| p.unmasked), next.config(0, 4) >> 16 & 8), (1, 0), "once");
    next.functions[0].lock().end_line(&mut next.world.outputs);
    assert_eq!(next.physical(0, |p| p.unmasked), 1);
}

#[test]
fn a_line_that_is_not_there_is_refused() {
    let mut lab = Lab::new(1);
    lab.set_config(0, 4, 0b110);
    let states = saved(&lab);
    assert!(restored(&lab, &states).is_ok());
    let line = OWN + core::mem::offset_of!(state::AssignedFunction, line);
    let route = states.last().unwrap().len() - 8;
    for (at, reason) in
        [(line, "differs where no guest can write"), (route, "an interrupt is received where none can be")]
    {
        let mut states = states.clone();
        states.last_mut().unwrap()[at] = 0;
        assert_eq!(restored(&lab, &states).map(drop).expect_err("it is refused").reason, reason);
    }
}

#[test]
fn a_closed_line_keeps_its_input_and_has_no_route() {
    let lab = Lab::new(1);
    let mut states = saved(&lab);
    let mut next = restored(&lab, &states).expect("it is good");
    let route = Route { gsi: 16, ..Route::default() };
    assert_eq!(next.physical(0, |p| p.routes.get(&LINE).copied()), Some(route));
    let at = states.last().unwrap().len() - 8;
    states.last_mut().unwrap()[at] = 0x60;
    let error = restored(&lab, &states).map(drop).expect_err("it is refused");
    assert_eq!(error.reason, "an interrupt is received where none can be");
}

#[test]
fn another_functions_state_is_refused() {
    let lab = Lab::new(1);
    let states = saved(&lab);
    let mut description = lab.functions[0].lock().description();
    description.ranges[2] = Some(Range { bar: Bar::Memory32 { bytes: 0x2000 }, address: 0xfe00_4000 });
    let mut other = Lab::bare();
    other.attach(description, FakePhysical::new(0, &other.space));
    let error = other.functions[0].lock().restore(1, states.last().unwrap()).expect_err("it is refused");
    assert_eq!(error.reason, "it is another function's");
}

#[test]
fn a_reset_under_way_is_still_under_way() {
    let mut lab = Lab::new(1);
    lab.enable_at(0, HIGH);
    lab.set_config(0, DEVICE_CONTROL, RESET);
    let mut next = restored(&lab, &saved(&lab)).unwrap();
    assert_eq!((next.phase(0), next.config(0, 0)), (Phase::Resetting, u32::MAX));
    next.with(0, |function, outputs| function.finish_reset(true, outputs));
    assert_eq!(next.config(0, 0), 0xabcd_1234);
}

#[test]
fn ranges_are_mapped_again_where_they_were() {
    let mut lab = Lab::new(2);
    lab.enable_at(0, HIGH);
    lab.enable_at(1, HIGH);
    lab.set_config(1, 0x18, 0xc000_0000);
    let next = restored(&lab, &saved(&lab)).unwrap();
    assert_eq!(next.mapped(), lab.mapped());
}

proptest! {
    #[test]
    fn an_update_at_any_moment_changes_nothing_that_the_guest_sees(
        before in prop::collection::vec(any_step(), 0..32),
        after in prop::collection::vec(any_step(), 0..32),
    ) {
        let mut lab = Lab::new(2);
        before.iter().for_each(|step| _ = take(&mut lab, step));
        let mut next = restored(&lab, &saved(&lab)).unwrap();
        prop_assert_eq!(lab.mapped(), next.mapped());
        for step in &after {
            prop_assert_eq!(take(&mut lab, step), take(&mut next, step), "{:?}", step);
            prop_assert_eq!(lab.mapped(), next.mapped());
        }
        prop_assert_eq!(saved(&lab), saved(&next));
        for function in 0..2 {
            let of = |lab: &mut Lab| {
                lab.physical(function, |p| {
                    p.opened.sort_unstable();
                    (p.config, p.interrupts, p.opened.clone(), p.reads)
                })
            };
            prop_assert_eq!(of(&mut lab), of(&mut next));
        }
    }

    #[test]
    fn a_hostile_state_is_refused_or_can_go_on(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        steps in prop::collection::vec(any_step(), 0..16),
    ) {
        let lab = Lab::new(2);
        let mut states = saved(&lab);
        let last = states.last_mut().unwrap();
        for (at, value) in changes {
            let at = OWN + at.index(last.len() - OWN);
            last[at] = value;
        }
        if let Ok(mut next) = restored(&lab, &states) {
            // The model is of one function only.
            let is_same = next.with(1, |function, _| function.description()) == lab.functions[1].lock().description();
            steps.iter().filter(|_| is_same).for_each(|step| _ = take(&mut next, step));
            prop_assert!(restored(&next, &saved(&next)).is_ok());
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Physical functions that belong to a guest: hardware that states anything, guests that write anything, and states
//! that another image hands over. The model of the hardware panics where a guest reaches what it must not.

use std::sync::Arc;

use pci::Bdf;
use vm::addr::{AccessSize, Gpa};
use vm::devices::bus::Bus;
use vm::devices::device::Device as _;
use vm::devices::pci::assigned::{Assigned, Description, Phase, Raised};
use vm::devices::pci::{Endpoint, Slot};
use vm::platform::layout;
use vm::testing::{FakeAddressSpace, FakePhysical, FakeWorld};

use crate::input::Input;

const MEMORY_BYTES: u64 = 4 << 30;
const HIGH: u64 = 0x1_4000_0000;
const FUNCTIONS: u32 = 2;
const FIRST_SLOT: u8 = 8;

type Function = Endpoint<Assigned<FakePhysical>>;

/// Hardware, a guest or a state, by the first byte.
pub fn assigned(data: &[u8]) {
    let mut input = Input(data);
    match input.u8() % 4 {
        0 => hardware(&mut input),
        1 => state(&mut input),
        _ => guest(&mut input),
    }
}

fn name() -> Bdf {
    Bdf::of_requester(0, 0x100)
}

fn described(number: u32, space: &Arc<std::sync::Mutex<FakeAddressSpace>>) -> (Description, FakePhysical) {
    let mut physical = FakePhysical::new(number, space);
    let line = Some(layout::PCI_PINS.start + number as u8);
    let description = Description::probe(name(), &mut physical, line).expect("it is good");
    physical.is_sealed = true;
    (description, physical)
}

/// A function that lies is refused with a reason, or is one that there can be.
fn hardware(input: &mut Input<'_>) {
    let space = FakeAddressSpace::new(MEMORY_BYTES);
    let mut physical = FakePhysical::new(0, &space);
    if input.bool() {
        physical.masks = std::array::from_fn(|_| u32::MAX << (input.u8() % 32));
    }
    physical.vanishes_after = if input.bool() { input.u8().into() } else { u32::MAX };
    while !input.is_empty() {
        physical.config[usize::from(input.u8())] = input.u8();
    }
    let before = physical.config;
    match Description::probe(name(), &mut physical, None) {
        Err(problem) => drop(problem.to_string()),
        Ok(description) => {
            assert_eq!(physical.config[8..], before[8..], "each register is as it was");
            assert!(Assigned::in_slot(Slot(FIRST_SLOT), description, physical).is_some());
        }
    }
}

/// A state is refused, or one in which a function can be.
fn state(input: &mut Input<'_>) {
    let space = FakeAddressSpace::new(MEMORY_BYTES);
    let function = || {
        let (description, physical) = described(0, &space);
        Assigned::in_slot(Slot(FIRST_SLOT), description, physical).expect("there can be one")
    };
    let mut bytes = vec![0; function().state_bytes()];
    let used = function().save(&mut bytes).expect("there is room");
    bytes.truncate(used);
    while input.bool() {
        let at = usize::from(input.u16()) % bytes.len();
        bytes[at] = input.u8();
    }
    bytes.truncate(bytes.len() - usize::from(input.u8() == 1));
    let _ = Description::from_saved(bytes.get(usize::from(input.u16())..).unwrap_or_default());
    let mut next = function();
    if next.restore(1, &bytes).is_ok() {
        let mut again = vec![0; next.state_bytes()];
        let used = next.save(&mut again).expect("there is room");
        assert_eq!(function().restore(1, &again[..used]), Ok(()));
    }
}

/// Two functions on a bus, and what the guest and the host do with them.
fn guest(input: &mut Input<'_>) {
    let (mut bus, space) = (Bus::new(false), FakeAddressSpace::new(MEMORY_BYTES));
    let mut world = FakeWorld::default();
    bus.open_apertures(MEMORY_BYTES);
    let functions: Vec<_> = (0..FUNCTIONS)
        .map(|number| {
            let (description, physical) = described(number, &space);
            let slot = Slot(FIRST_SLOT * (number as u8 + 1));
            let function = Assigned::in_slot(slot, description, physical).expect("there can be one");
            bus.attach_function(function).expect("its slot is free")
        })
        .collect();
    while !input.is_empty() {
        let kind = input.u8();
        match kind % 8 {
            0..=5 => access(&bus, kind % 8, input, &space, &mut world),
            6 => bus.lines_ended(input.u8()).for_each(|device| device.lock().end_line(&mut world.outputs)),
            _ => {
                by_host(&mut functions[usize::from(input.bool())].lock(), input, &mut world);
                bus.place_functions();
            }
        }
        bus.apply_lines(&mut world.outputs);
        drop(world.outputs.take_messages());
    }
    functions.iter().for_each(|function| function.lock().vanish(&mut world.outputs));
    bus.place_functions();
    assert!(space.lock().expect("no panic").pieces.is_empty(), "all is unmapped");
}

fn access(
    bus: &Bus,
    kind: u8,
    input: &mut Input<'_>,
    space: &Arc<std::sync::Mutex<FakeAddressSpace>>,
    world: &mut FakeWorld,
) {
    let size = input.choose(&[AccessSize::Byte, AccessSize::Word, AccessSize::Dword, AccessSize::Qword]);
    let function = u64::from(input.u8() & 1) + 1;
    let address = match kind {
        0..=2 => layout::ECAM.0 + (function << 15) + u64::from(input.u8()),
        3 => HIGH + 0x2000 + u64::from(input.u16() & 0x1fff),
        4 => 0xc000_0000 + u64::from(input.u16()),
        _ => input.number(),
    };
    let value = if kind == 0 { HIGH + (u64::from(input.u8()) << 14) } else { input.u64() };
    let is_mapped = space.lock().expect("no panic").at(address).is_some();
    let Some((device, at)) = bus.find_memory(Gpa(address), size).and_then(|place| bus.device(place)) else { return };
    if !is_mapped {
        device.lock().write(at, value & size.mask(), &mut world.context());
        device.lock().read(at, &mut world.context());
    }
}

fn by_host(function: &mut Function, input: &mut Input<'_>, world: &mut FakeWorld) {
    match input.u8() % 8 {
        0 => function.raise(Raised::Line, &mut world.outputs),
        1..=3 => function.raise(Raised::Vector(input.u8().into()), &mut world.outputs),
        4 => function.physical().refuses_maps = input.bool(),
        5 => function.physical().refuses_reset = input.bool(),
        6 => function.physical().is_gone |= input.u8() == 0,
        _ => {
            if function.phase() == Phase::Resetting {
                function.physical().reset_is_over();
            }
            function.finish_reset(input.u8() != 0, &mut world.outputs);
        }
    }
}

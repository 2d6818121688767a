// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices in the words of each version: places in version 3, blocks since version 4.

use handover::devices::{DeviceBlocks, DeviceWriter};
use handover::state::{DeviceKind, Devices, PciFunction};
use zerocopy::FromBytes as _;

use super::*;
use crate::devices::pci::Slot;
use crate::testing::Probe;

/// A device's kind, instance, version and state.
type Block = ((u32, u32, u32), Vec<u8>);

fn saved(machine: &Machine<FakeMemory>, version: u32) -> (Devices, Vec<u8>) {
    let (mut state, mut tail) = (Devices::new_zeroed(), vec![0; machine.devices_tail_bytes()]);
    let used = machine.save_devices(&mut state, &mut tail, Reader::of(version)).unwrap();
    tail.truncate(used);
    (state, tail)
}

/// The field for which the devices of version 3 are refused.
fn places(spoil: impl FnOnce(&mut Devices, &mut Vec<u8>)) -> &'static str {
    let (mut state, mut tail) = saved(&Lab::after_power_on(false).machine, 3);
    spoil(&mut state, &mut tail);
    Lab::after_power_on(false).machine.restore_devices(&state, &tail).expect_err("refused").field
}

#[test]
fn devices_of_version_3_that_cannot_be_are_refused() {
    let function = |tail: &mut Vec<u8>, spoil: fn(&mut PciFunction)| {
        spoil(PciFunction::mut_from_prefix(tail).unwrap().0);
    };
    assert_eq!(places(|s, _| s.serial.received_count = 17), "serial.received");
    assert_eq!(places(|s, _| s.serial.flags = 4), "serial.flags");
    assert_eq!(places(|s, _| s.cmos.index = 0x80), "cmos.index");
    assert_eq!(places(|s, _| s.ioapic.lines = u32::MAX.into()), "ioapic.lines");
    assert_eq!(places(|s, _| s.small.panic_event = 3.into()), "pvpanic.last_event");
    assert_eq!(places(|s, _| s.small.sleep_control = 0xff), "power.sleep_control");
    assert_eq!(places(|s, _| s.small.flags = 1.into()), "debug_exit.last_code");
    assert_eq!(places(|s, _| s.small.flags = 2.into()), "small.flags");
    assert_eq!(places(|s, _| s.small.pci_address = 1.into()), "pci.address");
    assert_eq!(places(|s, _| s.small.pci_functions = 2.into()), "pci.functions");
    assert_eq!(places(|_, tail| tail.truncate(tail.len() - 1)), "pci.functions");
    assert_eq!(places(|_, tail| function(tail, |one| one.slot = 256.into())), "pci.functions");
    assert_eq!(places(|_, tail| function(tail, |one| one.config[0] = 0)), "pci.functions.config");
}

/// Changes saved blocks and restores a machine from them.
fn blocks(change: impl FnOnce(&mut Vec<Block>)) -> Result<(), &'static str> {
    let (state, tail) = saved(&Lab::after_power_on(true).machine, VERSION);
    let read = DeviceBlocks::open(state.blocks.get(), &tail).unwrap();
    let tag = |header: state::DeviceBlock| (header.kind.get(), header.instance.get(), header.version.get());
    let mut blocks: Vec<Block> = read.iter().map(|(header, payload)| (tag(header), payload.to_vec())).collect();
    change(&mut blocks);
    restore(&Lab::after_power_on(true).machine, &blocks).map_err(|error| error.field)
}

fn restore(machine: &Machine<FakeMemory>, blocks: &[Block]) -> Result<(), StateError> {
    let mut tail = vec![0; 4096];
    let mut writer = DeviceWriter::new(&mut tail);
    for (tag, payload) in blocks {
        let fill = |place: &mut [u8]| {
            place[..payload.len()].copy_from_slice(payload);
            Ok(payload.len())
        };
        writer.add(*tag, fill).unwrap();
    }
    let (count, used) = writer.finish();
    machine.restore_devices(&Devices { blocks: count.into(), ..Devices::new_zeroed() }, &tail[..used])
}

/// The state in the block of a kind.
fn of(blocks: &mut [Block], kind: DeviceKind) -> &mut Block {
    blocks.iter_mut().find(|((number, ..), _)| *number == kind as u32).expect("it is there")
}

#[test]
fn a_device_is_found_by_its_tag_in_whatever_order() {
    assert_eq!(blocks(|blocks| blocks.reverse()), Ok(()));
}

#[test]
fn blocks_that_are_not_this_machines_devices_are_refused() {
    assert_eq!(blocks(|blocks| _ = blocks.pop()), Err("devices.blocks"), "a device has none");
    assert_eq!(blocks(|blocks| blocks.push(blocks[0].clone())), Err("devices.blocks"), "a device has two");
    assert_eq!(blocks(|blocks| blocks[0].0.0 = Probe::KIND), Err("devices.blocks"), "an unknown kind");
    assert_eq!(blocks(|blocks| blocks[0].0.1 = 1), Err("devices.blocks"), "another instance");
    assert_eq!(blocks(|blocks| blocks[0].0.2 = 0), Err("devices.version"));
    assert_eq!(blocks(|blocks| blocks[0].0.2 = 2), Err("devices.version"), "a newer image's");
    let lab = Lab::new();
    let (mut state, tail) = saved(&lab.machine, VERSION);
    state.blocks = (state.blocks.get() + 1).into();
    assert_eq!(lab.machine.restore_devices(&state, &tail).map_err(|error| error.field), Err("devices.blocks"));
}

#[test]
fn blocks_that_no_device_can_have_written_are_refused() {
    let spoilt = |kind, at: usize, value| blocks(|blocks| of(blocks, kind).1[at] = value);
    assert_eq!(spoilt(DeviceKind::Com1, 16, 17), Err("serial.received"));
    assert_eq!(spoilt(DeviceKind::Cmos, 16, 0x80), Err("cmos.index"));
    assert_eq!(spoilt(DeviceKind::Ioapic, 195, 1), Err("ioapic.lines"));
    assert_eq!(spoilt(DeviceKind::Power, 0, 0xff), Err("power.sleep_control"));
    assert_eq!(spoilt(DeviceKind::Pvpanic, 0, 3), Err("pvpanic.last_event"));
    assert_eq!(spoilt(DeviceKind::DebugExit, 4, 2), Err("debug_exit.flags"));
    assert_eq!(spoilt(DeviceKind::PciHost, 0, 1), Err("pci.address"));
    assert_eq!(spoilt(DeviceKind::PlainFunction, 8, 0), Err("pci.functions.config"));
    let of_every_machine = |kind: &&DeviceKind| **kind as u32 <= DeviceKind::PlainFunction as u32;
    for kind in DeviceKind::ALL.iter().filter(of_every_machine) {
        assert!(blocks(|blocks| _ = of(blocks, *kind).1.pop()).is_err(), "{kind:?} is cut off");
        assert!(blocks(|blocks| of(blocks, *kind).1.push(0)).is_err(), "{kind:?} is too long");
    }
}

#[test]
fn a_press_of_the_power_button_is_handed_over_to_those_that_know_one() {
    let machine = Lab::after_power_on(false).machine;
    let old = Reader { version: VERSION, newest_device: DeviceKind::SriovFunction as u32 };
    assert!([old, Reader::of(3)].iter().all(|reader| machine.can_be_read_by(*reader)));
    let (state, tail) = saved(&machine, 3);
    machine.with_function(machine.bus().power_button(), &mut |_, _| (), |button, outputs| button.press(outputs));
    assert!(![old, Reader::of(3)].iter().any(|reader| machine.can_be_read_by(*reader)), "it would be lost");
    let next = Lab::after_power_on(false).machine;
    let (pressed, pressed_tail) = saved(&machine, VERSION);
    next.restore_devices(&pressed, &pressed_tail).unwrap();
    assert!(next.bus().power_button().lock().is_pressed());
    next.restore_devices(&state, &tail).unwrap();
    assert!(!next.bus().power_button().lock().is_pressed(), "version 3 knew no button");
}

fn with_probe() -> Lab {
    let mut lab = Lab::new();
    lab.machine.bus_mut().attach_function(Probe::in_slot(Slot(8))).expect("the slot is free");
    lab
}

#[test]
fn a_new_kind_of_device_changes_no_format() {
    let lab = with_probe();
    assert!(lab.machine.can_be_read_by(Reader::of(VERSION)));
    let (state, tail) = saved(&lab.machine, VERSION);
    let next = with_probe();
    next.machine.restore_devices(&state, &tail).unwrap();
    assert_eq!(saved(&next.machine, VERSION), (state, tail));
    let old = Lab::new();
    let refused = old.machine.restore_devices(&state, &saved(&lab.machine, VERSION).1).expect_err("no such device");
    assert_eq!(refused.reason, "this machine has no such device");
}

#[test]
fn version_3_does_not_get_a_guest_with_a_device_that_it_does_not_know() {
    let lab = with_probe();
    assert!(Lab::new().machine.can_be_read_by(Reader::of(3)) && !lab.machine.can_be_read_by(Reader::of(3)));
    assert_eq!(lab.machine.save_devices(&mut Devices::new_zeroed(), &mut [0; 4096], Reader::of(3)), Err(Full));
}

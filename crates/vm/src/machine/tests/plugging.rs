// SPDX-License-Identifier: MIT OR Apache-2.0
//! PCI functions that come while the machine runs, and go.

use proptest::prelude::*;

use super::*;
use crate::devices::bus::{Bus, Taken};
use crate::devices::pci::assigned::{Assigned, Description, HostIdentity};
use crate::devices::pci::{Endpoint, Slot};
use crate::platform::layout::line_of;
use crate::testing::{FakeAddressSpace, FakePhysical, Probe};

const ECAM: u64 = 0xe000_0000;
const BAR: u64 = 0xc000_0000;
const CHECKS: u16 = 0x610;
const REQUESTS: u16 = 0x614;
const EJECT: u16 = 0x618;
const BUTTON: u16 = 0x620;
const LEVEL: u32 = 1 << 15;
/// A pin's vector, as the guest has set it.
const VECTOR: u8 = 0x52;

fn config(device: u8) -> u64 {
    ECAM + (u64::from(device) << 15)
}

fn plug(lab: &Lab, device: u8) -> bool {
    lab.machine.bus().plug(Probe::in_slot(Slot::of_device(device))).is_ok()
}

fn out(lab: &mut Lab, port: u16, value: u32) {
    lab.write_port(port, AccessSize::Dword, value);
}

fn inl(lab: &mut Lab, port: u16) -> u32 {
    lab.read_port(port, AccessSize::Dword)
}

#[test]
fn a_function_is_there_from_the_moment_at_which_it_comes_until_it_goes() {
    let mut lab = Lab::new();
    for _ in 0..3 {
        assert_eq!(lab.load(Gpa(config(5))), u32::MAX);
        assert!(plug(&lab, 5));
        assert_eq!(lab.load(Gpa(config(5))), 0x7e57_1234);
        assert_eq!(lab.load(Gpa(config(5) + 0x10)), 0, "its ranges have no address");
        lab.store(Gpa(config(5) + 0x10), BAR as u32);
        lab.store(Gpa(config(5) + 4), 2);
        lab.store(Gpa(BAR), 7);
        assert_eq!(lab.load(Gpa(BAR)), 7);
        assert!(lab.machine.bus().unplug(Slot::of_device(5)));
        assert_eq!(lab.load(Gpa(BAR)), u32::MAX);
        assert!(!lab.machine.bus().unplug(Slot::of_device(5)));
    }
}

#[test]
fn a_function_comes_only_where_none_is() {
    let mut lab = Lab::new();
    lab.machine.bus_mut().attach_function(Probe::in_slot(Slot::of_device(1))).expect("the slot is free");
    assert_eq!(lab.machine.bus().free_device(), Some(2));
    assert!(!plug(&lab, 0) && !plug(&lab, 1), "the host bridge, and one that stays");
    assert!(!lab.machine.bus().unplug(Slot::of_device(1)) && !lab.machine.bus().unplug(Slot::HOST_BRIDGE));
    for device in 2..32 {
        assert_eq!(lab.machine.bus().free_device(), Some(device));
        assert!(plug(&lab, device) && !plug(&lab, device));
    }
    assert_eq!(lab.machine.bus().free_device(), None);
    assert_eq!(lab.machine.bus().devices().count(), 9 + 1 + 1 + 30, "fixed ones, host bridge, attached, plugged");
    assert!(lab.machine.bus().unplug(Slot::of_device(17)));
    assert_eq!(lab.machine.bus().free_device(), Some(17));
}

#[test]
fn a_line_has_one_function_until_that_goes() {
    let lab = Lab::new();
    let (bus, space) = (lab.machine.bus(), FakeAddressSpace::new(1 << 20));
    let plug_with_line = |device: u8, line: u8| {
        let mut physical = FakePhysical::new(0, &space);
        let description = Description::probe("01:00.0".parse().unwrap(), &mut physical, Some(line)).unwrap();
        let function = Assigned::in_slot(Slot::of_device(device), description, physical).unwrap();
        bus.plug(function).map(drop)
    };
    assert!(!bus.has_lines());
    assert_eq!(plug_with_line(1, line_of(1)), Ok(()));
    assert_eq!(plug_with_line(9, line_of(9)), Err(Taken), "the same line");
    assert_eq!((plug_with_line(2, 15), plug_with_line(2, 24)), (Err(Taken), Err(Taken)), "no line of PCI's");
    assert!(plug(&lab, 9) && bus.has_lines(), "without a line it comes");
    assert_eq!(plug_with_line(1, line_of(2)), Err(Taken), "its slot is taken");
    for device in 2..9 {
        assert_eq!(plug_with_line(device, line_of(device)), Ok(()));
    }
    assert!(bus.unplug(Slot::of_device(9)) && bus.unplug(Slot::of_device(1)));
    assert_eq!(plug_with_line(9, line_of(9)), Ok(()));
    (2..10).for_each(|device| assert!(bus.unplug(Slot::of_device(device))));
    assert!(!bus.has_lines());
}

/// A vCPU has found the function, and has not accessed it yet when it goes.
#[test]
fn a_function_that_has_gone_is_not_reached_by_who_found_it_before() {
    let lab = Lab::new();
    plug(&lab, 1);
    let bus = lab.machine.bus();
    let found = bus.find_memory(Gpa(config(1)), AccessSize::Dword);
    assert!(found.and_then(|place| bus.device(place)).is_some(), "the bus itself");
    configure(bus, 1);
    let found = bus.find_memory(Gpa(BAR), AccessSize::Dword).expect("it decodes the address");
    let (held, _) = bus.device(found).expect("it is there");
    assert!(bus.unplug(Slot::of_device(1)));
    assert!(bus.device(found).is_none());
    // One that was borrowed in time stays for that long.
    let _ = held.lock().tag();
}

fn configure(bus: &Bus, device: u8) {
    let mut world = crate::testing::FakeWorld::default();
    for (register, value) in [(0x10, BAR), (4, 2)] {
        let place = bus.find_memory(Gpa(config(device) + register), AccessSize::Dword).expect("the bus");
        let (bus, at) = bus.device(place).expect("the bus");
        bus.lock().write(at, value, &mut world.context());
    }
}

#[test]
fn the_guest_is_interrupted_until_it_has_seen_what_came() {
    let mut lab = Lab::new();
    lab.redirect(9, u32::from(VECTOR) | LEVEL);
    let mut notified = Vec::new();
    let mut notify = |vcpu, was_notified| notified.push((vcpu, was_notified));
    let machine = &lab.machine;
    machine.with_function(machine.bus().hot_plug(), &mut notify, |controller, outputs| controller.check(3, outputs));
    assert_eq!(notified, [(0, false)]);
    assert_eq!(lab.take_interrupt(), Some(VECTOR));
    lab.wrmsr(EOI, 0).unwrap();
    assert_eq!(lab.take_interrupt(), Some(VECTOR), "it has not been seen");
    assert_eq!(inl(&mut lab, CHECKS), 1 << 3);
    out(&mut lab, CHECKS, 1 << 3);
    lab.wrmsr(EOI, 0).unwrap();
    assert_eq!(lab.take_interrupt(), None);
}

/// The guest's driver is not there yet when the function comes.
#[test]
fn what_came_before_the_guest_listened_interrupts_once_it_does() {
    let mut lab = Lab::new();
    let machine = &lab.machine;
    machine.with_function(machine.bus().hot_plug(), &mut |_, _| (), |controller, outputs| controller.check(3, outputs));
    assert_eq!(lab.take_interrupt(), None);
    lab.redirect(9, u32::from(VECTOR) | LEVEL);
    assert_eq!(lab.take_interrupt(), Some(VECTOR));
}

#[test]
fn the_host_is_notified_when_the_guest_ejects_what_it_was_asked_for() {
    let mut lab = Lab::new();
    out(&mut lab, EJECT, u32::MAX);
    assert_eq!(lab.host.ejected, 0, "it was asked for nothing");
    let machine = &lab.machine;
    let ask = |controller: &mut crate::devices::hot_plug::HotPlug, outputs: &mut _| controller.request(3, outputs);
    machine.with_function(machine.bus().hot_plug(), &mut |_, _| (), ask);
    assert_eq!(inl(&mut lab, REQUESTS), 1 << 3);
    out(&mut lab, EJECT, 1 << 3);
    assert_eq!((lab.host.ejected, inl(&mut lab, REQUESTS)), (1, 0));
}

/// The guest's kernel has not come so far yet when the button is pressed.
#[test]
fn a_press_of_the_power_button_interrupts_until_the_guest_has_seen_it() {
    let mut lab = Lab::new();
    let machine = &lab.machine;
    machine.with_function(machine.bus().power_button(), &mut |_, _| (), |button, outputs| button.press(outputs));
    assert_eq!(lab.take_interrupt(), None);
    lab.redirect(10, u32::from(VECTOR) | LEVEL);
    assert_eq!(lab.take_interrupt(), Some(VECTOR));
    lab.write_port(BUTTON, AccessSize::Byte, 1);
    lab.wrmsr(EOI, 0).unwrap();
    assert_eq!(lab.take_interrupt(), None);
}

/// A step of the host, or of the guest.
#[derive(Clone, Debug)]
enum Step {
    Plug(u8),
    Unplug(u8),
    Config(u8, u16, u32),
    Access(u64, bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let address = prop_oneof![Just(BAR), Just(BAR + 0x4000), Just(0x2_0000_0000u64), any::<u32>().prop_map(u64::from)];
    let register = prop_oneof![Just(0x04u16), Just(0x10), Just(0x14), Just(0x18), Just(0x1c), 0..256u16];
    let value = prop_oneof![Just(6u32), Just(2), Just(BAR as u32), Just(BAR as u32 + 0x4000), Just(2), any::<u32>()];
    let step = prop_oneof![
        2 => (1..5u8).prop_map(Step::Plug),
        1 => (1..5u8).prop_map(Step::Unplug),
        6 => (0..6u8, register, value).prop_map(|(device, register, value)| Step::Config(device, register & !3, value)),
        3 => (address, any::<bool>()).prop_map(|(address, is_write)| Step::Access(address & !3, is_write)),
    ];
    prop::collection::vec(step, 0..80)
}

fn described(number: u8, space: &Arc<std::sync::Mutex<FakeAddressSpace>>) -> Endpoint<Assigned<FakePhysical>> {
    let mut physical = FakePhysical::new(number.into(), space);
    let description = Description::probe("01:00.0".parse().unwrap(), &mut physical, None).unwrap();
    physical.is_sealed = true;
    // One that its guest resets answers nothing meanwhile, as if it had gone.
    let description = Description { has_reset: false, ..description };
    Assigned::in_slot(Slot::of_device(number), description, physical).unwrap()
}

proptest! {
    /// Whatever the guest writes: what has gone is mapped nowhere and answers nowhere, and no two functions, nor one
    /// and memory, are mapped at one address (the model of the address space panics).
    #[test]
    fn what_has_gone_is_nowhere(steps in steps()) {
        let mut lab = Lab::new();
        let space = FakeAddressSpace::new(lab.machine.memory().size_bytes());
        let mut there: Vec<u8> = Vec::new();
        for step in steps {
            match step {
                Step::Plug(device) => {
                    let plugged = lab.machine.bus().plug(described(device, &space));
                    prop_assert_eq!(plugged.is_ok(), !there.contains(&device));
                    there.extend(plugged.ok().map(|_| device));
                }
                Step::Unplug(device) => {
                    prop_assert_eq!(lab.machine.bus().unplug(Slot::of_device(device)), there.contains(&device));
                    there.retain(|other| *other != device);
                }
                Step::Config(device, register, value) => lab.store(Gpa(config(device) + u64::from(register)), value),
                Step::Access(address, is_write) => {
                    let is_mapped = space.lock().unwrap().at(address).is_some();
                    let is_memory = address < lab.machine.memory().size_bytes();
                    match is_write {
                        _ if is_mapped || is_memory || (ECAM..1 << 32).contains(&address) => {}
                        true => lab.store(Gpa(address), 1),
                        false => _ = lab.load(Gpa(address)),
                    }
                }
            }
            for device in 1..5u8 {
                let is_there = lab.load(Gpa(config(device))) != u32::MAX;
                prop_assert_eq!(is_there, there.contains(&device));
            }
            let is_of_one_there = |number: u32| there.iter().any(|device| u32::from(*device) == number);
            prop_assert!(space.lock().unwrap().pieces.iter().all(|(number, _)| is_of_one_there(*number)));
        }
    }
}

/// The next image builds functions in the slots in which they are, whichever slots between them are free.
#[test]
fn a_packed_function_names_its_slot() {
    use zerocopy::IntoBytes as _;
    let space = FakeAddressSpace::new(1 << 20);
    for device in [1, 7, 31] {
        let packed = described(device, &space).packed();
        assert_eq!(HostIdentity::device_number(packed.as_bytes()), Some(device));
    }
    assert_eq!(HostIdentity::device_number(&[0; 20]), None);
}

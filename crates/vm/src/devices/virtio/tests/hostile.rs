// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drivers that break the rules: the device needs a reset, reports one fault, and works after the reset.

use std::vec;

use proptest::prelude::*;

use super::*;
use crate::devices::outputs::Request;

const NEEDS_RESET: u8 = 64;

/// The fault that was reported.
fn fault(lab: &mut Lab) -> Option<Fault> {
    match lab.world.outputs.take_request() {
        Some(Request::DriverFault(kind, fault)) if kind == DeviceKind::VirtioRng as u32 => Some(fault),
        other => {
            assert_eq!(other, None);
            None
        }
    }
}

#[test]
fn s2_1_2_after_a_fault_the_device_does_nothing_until_it_is_reset() {
    let mut lab = started();
    lab.add(0, b"wrong", 8).expect("there is room");
    lab.notify(0);
    assert_eq!(fault(&mut lab), Some(Fault::Request("this is wrong")));
    assert_eq!(lab.status(), 15 | NEEDS_RESET);
    assert_eq!(lab.interrupts(), [2], "the configuration's vector");
    lab.add(0, b"good", 8).expect("there is room");
    lab.notify(0);
    lab.poll();
    assert_eq!((lab.collect(0), lab.interrupts()), (None, vec![]));
    for _ in 0..3 {
        lab.start(VERSION_1);
        lab.add(0, b"good", 8).expect("there is room");
        lab.notify(0);
        assert!(lab.collect(0).is_some());
        lab.interrupts();
        lab.add(0, b"wrong", 8).expect("there is room");
        lab.notify(0);
        assert_eq!(fault(&mut lab), None, "a fault is reported once");
        assert_eq!(lab.status() & NEEDS_RESET, NEEDS_RESET);
    }
}

#[test]
fn queues_that_cannot_be_are_faults_when_they_are_enabled() {
    let faults = [(24, 3, Fault::QueueSize { size: 3 }), (24, 32, Fault::QueueSize { size: 32 })];
    let misaligned = [(32, 8, Fault::Misaligned { address: 8 }), (48, 6, Fault::Misaligned { address: 6 })];
    for (register, value, expected) in faults.into_iter().chain(misaligned) {
        let mut lab = lab();
        assert!(lab.negotiate(VERSION_1));
        lab.write(register, if register == 24 { AccessSize::Word } else { AccessSize::Dword }, value);
        lab.write(28, AccessSize::Word, 1);
        assert_eq!((fault(&mut lab), lab.read(28, AccessSize::Word)), (Some(expected), 0));
        assert_eq!(lab.status(), 11 | NEEDS_RESET);
    }
}

#[test]
fn rings_over_device_registers_are_a_fault_and_nothing_is_written() {
    let mut lab = lab();
    assert!(lab.negotiate(VERSION_1));
    lab.set_up(0);
    lab.write(22, AccessSize::Word, 1);
    for (register, address) in [(32, 0xfee0_0000_u64), (40, 0xfec0_0000), (48, 0xe000_0000)] {
        lab.write(register, AccessSize::Qword, address);
    }
    lab.write(28, AccessSize::Word, 1);
    lab.write(20, AccessSize::Byte, 15);
    lab.endpoint.virtio_device().has = vec![1];
    lab.poll();
    assert!(matches!(fault(&mut lab), Some(Fault::Outside(_))));
}

#[test]
fn without_features_or_a_driver_notifications_do_nothing() {
    let mut lab = lab();
    lab.set_up(0);
    assert_eq!(lab.read(28, AccessSize::Word), 0, "no queue without features");
    assert!(lab.negotiate(VERSION_1));
    lab.set_up(0);
    lab.add(0, b"early", 8).expect("there is room");
    lab.notify(0);
    lab.poll();
    assert_eq!(lab.collect(0), None);
    lab.write(20, AccessSize::Byte, 15);
    lab.notify(0);
    assert!(lab.collect(0).is_some());
    lab.write(20, AccessSize::Byte, 15 | 128);
    lab.add(0, b"late", 8).expect("there is room");
    lab.notify(0);
    assert_eq!(lab.collect(0), None, "the driver has given it up");
}

#[derive(Clone, Debug)]
enum Step {
    Register(u64, AccessSize, u64),
    Config(u8, AccessSize, u64),
    Memory(u64, u64),
    Add(u8, u32),
    Notify(u16),
    Poll,
    Start,
}

fn any_step() -> impl Strategy<Value = Step> {
    let size =
        prop_oneof![Just(AccessSize::Byte), Just(AccessSize::Word), Just(AccessSize::Dword), Just(AccessSize::Qword)];
    let value = prop_oneof![0_u64..0x20, Just(0x1_0000), any::<u64>()];
    let offset = prop_oneof![0_u64..0x48, 0x800_u64..0x802, 0x1000_u64..0x1010, 0x3000_u64..0x3040, 0_u64..0x5000];
    prop_oneof![
        4 => (offset, size.clone(), value.clone()).prop_map(|(offset, size, value)| Step::Register(offset, size, value)),
        1 => (any::<u8>(), size, value.clone()).prop_map(|(register, size, value)| Step::Config(register, size, value)),
        2 => (0_u64..0x3000, value).prop_map(|(at, value)| Step::Memory(at, value)),
        2 => (any::<u8>(), 0_u32..0x100).prop_map(|(bytes, writable)| Step::Add(bytes, writable)),
        3 => (0_u16..3).prop_map(Step::Notify),
        1 => Just(Step::Poll),
        1 => Just(Step::Start),
    ]
}

fn take(lab: &mut Lab, step: &Step) {
    match *step {
        Step::Register(offset, size, value) => {
            lab.write(offset, size, value);
            lab.read(offset, size);
        }
        Step::Config(register, size, value) => {
            lab.set_config(register, size, value);
            lab.config(register, size);
        }
        Step::Memory(at, value) => lab.set_memory(at & !1, &value.to_le_bytes()[..2]),
        Step::Add(bytes, writable) => _ = lab.add(0, &[bytes; 32][..usize::from(bytes % 32)], writable),
        Step::Notify(queue) => lab.notify(queue),
        Step::Poll => lab.poll(),
        Step::Start => lab.start(VERSION_1 | EVENT_IDX | RING_RESET),
    }
    lab.world.outputs.take_messages().for_each(drop);
    lab.world.outputs.take_request();
}

proptest! {
    /// Whatever a driver does: no panic, a state that another image takes, and a device that works after a reset.
    #[test]
    fn any_driver_leaves_a_state_that_can_go_on(steps in prop::collection::vec(any_step(), 0..60)) {
        let mut lab = lab();
        for step in &steps {
            take(&mut lab, step);
        }
        let before = lab.saved();
        prop_assert_eq!(lab.hand_over(Echo::default()), Ok(()));
        prop_assert_eq!(lab.saved(), before);
        lab.start(VERSION_1);
        let head = lab.add(0, b"good", 8).expect("there is room");
        lab.notify(0);
        prop_assert_eq!(lab.collect(0), Some((head, b"good".to_vec())));
    }

    /// A state with some bytes changed is refused, or one that can go on.
    #[test]
    fn a_hostile_state_is_refused_or_can_go_on(
        changes in prop::collection::vec((264_usize..600, any::<u8>()), 1..5),
        steps in prop::collection::vec(any_step(), 0..20),
    ) {
        let mut lab = started();
        let mut state = lab.saved();
        let bytes = state.len();
        changes.into_iter().for_each(|(at, value)| state[at % bytes] = value);
        if lab.hand_over_from(Echo::default(), &state).is_ok() {
            for step in &steps {
                take(&mut lab, step);
            }
            prop_assert_eq!(lab.hand_over(Echo::default()), Ok(()));
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::addr::AccessSize;
use crate::devices::device::{At, Device};
use crate::devices::outputs::Request;
use crate::testing::FakeWorld;

const DWORD: AccessSize = AccessSize::Dword;
const CHECKS: u64 = 0;
const REQUESTS: u64 = 4;
const EJECT: u64 = 8;

/// A controller, and the level of its line.
struct Lab {
    controller: HotPlug,
    world: FakeWorld,
    line: bool,
    has_ejected: bool,
}

impl Lab {
    fn new() -> Self {
        Self { controller: HotPlug::new(), world: FakeWorld::default(), line: false, has_ejected: false }
    }

    fn read(&mut self, offset: u64) -> u64 {
        Device::read(&mut self.controller, At { range: 0, offset, size: DWORD }, &mut self.world.context())
    }

    fn write(&mut self, offset: u64, size: AccessSize, value: u64) {
        let controller: &mut dyn Device = &mut self.controller;
        controller.write(At { range: 0, offset, size }, value & size.mask(), &mut self.world.context());
        self.follow();
    }

    fn host(&mut self, act: impl FnOnce(&mut HotPlug, &mut Outputs)) {
        act(&mut self.controller, &mut self.world.outputs);
        self.follow();
    }

    fn follow(&mut self) {
        for line in self.world.outputs.take_lines() {
            assert_eq!(line.pin, HOT_PLUG_GSI);
            self.line = line.level;
        }
        self.has_ejected = self.world.outputs.take_request() == Some(Request::Ejected);
    }
}

#[test]
fn a_device_that_comes_is_seen_once() {
    let mut lab = Lab::new();
    assert_eq!((lab.read(CHECKS), lab.line), (0, false));
    lab.host(|controller, outputs| controller.check(5, outputs));
    assert_eq!((lab.read(CHECKS), lab.line), (1 << 5, true));
    lab.write(CHECKS, DWORD, 1 << 5);
    assert_eq!((lab.read(CHECKS), lab.line), (0, false));
}

#[test]
fn the_line_stays_until_all_is_seen() {
    let mut lab = Lab::new();
    lab.host(|controller, outputs| controller.check(1, outputs));
    lab.host(|controller, outputs| controller.request(2, outputs));
    lab.write(CHECKS, DWORD, u64::MAX);
    assert!(lab.line);
    lab.write(REQUESTS, DWORD, 1 << 2);
    assert!(!lab.line && lab.controller.is_leaving(2));
}

#[test]
fn a_device_that_is_asked_for_is_ejected_once() {
    let mut lab = Lab::new();
    lab.host(|controller, outputs| controller.request(3, outputs));
    lab.write(EJECT, DWORD, 1 << 3);
    assert!(lab.has_ejected && !lab.line && lab.controller.is_leaving(3));
    lab.host(|controller, outputs| controller.request(3, outputs));
    assert!(!lab.line, "it is the host's already");
    assert_eq!(lab.controller.take_ejected(), 1 << 3);
    assert!(!lab.controller.is_leaving(3));
    lab.write(EJECT, DWORD, 1 << 3);
    assert!(!lab.has_ejected);
    assert_eq!(lab.controller.take_ejected(), 0);
}

#[test]
fn a_device_that_the_host_did_not_ask_for_is_not_ejected() {
    let mut lab = Lab::new();
    lab.host(|controller, outputs| controller.request(3, outputs));
    lab.write(EJECT, DWORD, !(1 << 3));
    assert!(!lab.has_ejected);
    assert_eq!(lab.controller.take_ejected(), 0);
}

#[test]
fn a_device_that_is_taken_by_force_leaves_a_check_of_the_bus() {
    let mut lab = Lab::new();
    lab.host(|controller, outputs| controller.request(31, outputs));
    lab.host(|controller, outputs| controller.remove(31, outputs));
    assert_eq!((lab.read(CHECKS), lab.read(REQUESTS), lab.line), (1, 0, true));
    lab.write(EJECT, DWORD, 1 << 31);
    assert_eq!(lab.controller.take_ejected(), 0);
}

#[test]
fn numbers_of_no_device_are_passed_over() {
    let mut lab = Lab::new();
    for device in [0, 32, 255] {
        lab.host(|controller, outputs| controller.check(device, outputs));
        lab.host(|controller, outputs| controller.request(device, outputs));
        assert!(!lab.line && !lab.controller.is_leaving(device));
    }
}

#[test]
fn registers_have_one_width() {
    let mut lab = Lab::new();
    lab.host(|controller, outputs| controller.check(1, outputs));
    for (offset, size) in [(0, AccessSize::Byte), (0, AccessSize::Word), (1, DWORD), (10, DWORD), (12, DWORD)] {
        lab.write(offset, size, u64::MAX);
        let read = Device::read(&mut lab.controller, At { range: 0, offset, size }, &mut lab.world.context());
        assert_eq!(read, size.mask());
    }
    assert_eq!(lab.read(CHECKS), 1 << 1);
}

/// So it is with an image that knows no such controller.
#[test]
fn it_goes_on_without_a_state_as_if_nothing_waited() {
    let mut lab = Lab::new();
    assert!(lab.controller.is_dispensable());
    lab.host(|controller, outputs| controller.check(4, outputs));
    assert!(!lab.controller.is_dispensable(), "the guest would never hear of it");
    lab.write(CHECKS, DWORD, 1 << 4);
    lab.host(|controller, outputs| controller.request(4, outputs));
    lab.write(REQUESTS, DWORD, 1 << 4);
    assert!(!lab.controller.is_dispensable(), "the guest would eject it in vain");
    lab.write(EJECT, DWORD, 1 << 4);
    assert!(!lab.controller.is_dispensable(), "no controller would take it");
    assert!(lab.controller.restore_nothing());
    assert_eq!(lab.controller, HotPlug::new());
}

#[test]
fn states_that_cannot_be_are_refused() {
    let good = HotPlugState { checks: 1, requests: 2, asked: 6, ejected: 8 };
    assert!(HotPlug::from_state(good).is_ok());
    let bad = [
        HotPlugState { requests: 16, ..good },
        HotPlugState { asked: 7, ..good },
        HotPlugState { ejected: 2, ..good },
        HotPlugState { ejected: 1, ..good },
    ];
    for state in bad {
        assert!(HotPlug::from_state(state).is_err(), "{state:?}");
    }
    let mut controller = HotPlug::new();
    let before = controller.clone();
    assert!(controller.restore(1, &[0; 15]).is_err() && controller.restore(1, &[0; 17]).is_err());
    let mut bytes = [0; 16];
    bytes[8] = 1;
    assert!(controller.restore(1, &bytes).is_err());
    assert_eq!(controller, before);
}

/// A step of the guest, or of the host.
#[derive(Clone, Debug)]
enum Step {
    Check(u8),
    Request(u8),
    Remove(u8),
    Take,
    Write(u64, AccessSize, u64),
    Update,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let sizes = prop_oneof![Just(AccessSize::Byte), Just(AccessSize::Word), Just(DWORD)];
    let step = prop_oneof![
        (0..40u8).prop_map(Step::Check),
        (0..40u8).prop_map(Step::Request),
        (0..40u8).prop_map(Step::Remove),
        Just(Step::Take),
        (prop_oneof![Just(0u64), Just(4), Just(8), 0..12u64], sizes, any::<u64>())
            .prop_map(|(offset, size, value)| Step::Write(offset, size, value)),
        Just(Step::Update),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    /// Whatever a guest writes: the host gets back what it has asked for and nothing else, the line follows what is to
    /// be seen, and each state is handed over to another image.
    #[test]
    fn the_host_gets_what_it_has_asked_for_and_nothing_else(steps in steps()) {
        let mut lab = Lab::new();
        let mut asked = 0u32;
        for step in steps {
            match step {
                Step::Check(device) => lab.host(|controller, outputs| controller.check(device, outputs)),
                Step::Request(device) => {
                    asked |= bit(device);
                    lab.host(|controller, outputs| controller.request(device, outputs));
                }
                Step::Remove(device) => {
                    asked &= !bit(device);
                    lab.host(|controller, outputs| controller.remove(device, outputs));
                }
                Step::Take => {
                    let taken = lab.controller.take_ejected();
                    prop_assert_eq!(taken & !asked, 0);
                    asked &= !taken;
                }
                Step::Write(offset, size, value) => lab.write(offset, size, value),
                Step::Update => {
                    let mut bytes = vec![0; lab.controller.state_bytes()];
                    prop_assert_eq!(lab.controller.save(&mut bytes), Ok(bytes.len()));
                    let mut next = HotPlug::new();
                    prop_assert_eq!(next.restore(1, &bytes), Ok(()));
                    prop_assert_eq!(&next, &lab.controller);
                    lab.controller = next;
                }
            }
            let HotPlugState { checks, requests, .. } = lab.controller.state();
            prop_assert_eq!(lab.line, checks | requests != 0);
            for device in DEVICES {
                prop_assert_eq!(lab.controller.is_leaving(device), asked & bit(device) != 0);
            }
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
use std::vec;

use proptest::prelude::*;

use super::*;
use crate::addr::AccessSize;
use crate::devices::device::{At, Device};
use crate::testing::FakeWorld;

const REGISTER: At = At { range: 0, offset: 0, size: AccessSize::Byte };

/// A button, and the level of its line.
#[derive(Default)]
struct Lab {
    button: PowerButton,
    world: FakeWorld,
    line: bool,
}

impl Lab {
    fn press(&mut self) {
        self.button.press(&mut self.world.outputs);
        self.follow();
    }

    fn read(&mut self) -> u64 {
        Device::read(&mut self.button, REGISTER, &mut self.world.context())
    }

    fn write(&mut self, value: u8) {
        Device::write(&mut self.button, REGISTER, value.into(), &mut self.world.context());
        self.follow();
    }

    fn follow(&mut self) {
        for line in self.world.outputs.take_lines() {
            assert_eq!(line.pin, POWER_BUTTON_GSI);
            self.line = line.level;
        }
    }
}

#[test]
fn a_press_is_there_until_the_guest_has_seen_it() {
    let mut lab = Lab::default();
    assert_eq!((lab.read(), lab.line), (0, false));
    lab.press();
    lab.press();
    assert_eq!((lab.read(), lab.line), (1, true));
    lab.write(0xfe);
    assert_eq!((lab.read(), lab.line), (1, true), "another bit was written");
    lab.write(1);
    assert_eq!((lab.read(), lab.line), (0, false));
    lab.write(1);
    assert!(!lab.button.is_pressed() && !lab.line);
}

#[test]
fn a_reset_takes_a_press_back() {
    let mut lab = Lab::default();
    lab.press();
    lab.button.reset();
    assert_eq!(lab.button, PowerButton::new());
}

/// So it is with an image that knows no such button.
#[test]
fn it_goes_on_without_a_state_unless_it_is_pressed() {
    let mut lab = Lab::default();
    assert!(lab.button.is_dispensable());
    lab.press();
    assert!(!lab.button.is_dispensable(), "the guest would never hear of it");
    assert!(lab.button.restore_nothing());
    assert_eq!(lab.button, PowerButton::new());
}

#[test]
fn states_that_cannot_be_are_refused() {
    let mut button = PowerButton { is_pressed: true };
    for bytes in [&[0; 7][..], &[0; 9], &[2, 0, 0, 0, 0, 0, 0, 0], &[0, 0, 0, 1, 0, 0, 0, 0]] {
        assert!(button.restore(1, bytes).is_err(), "{bytes:?}");
    }
    assert!(button.is_pressed());
}

proptest! {
    /// For every write of a guest, the line follows the events to be seen, and each state is handed over to another
    /// image.
    #[test]
    fn any_guest_sees_what_was_pressed(steps in prop::collection::vec(prop::option::of(any::<u8>()), 0..40)) {
        let (mut lab, mut expected) = (Lab::default(), false);
        for step in steps {
            match step {
                None => {
                    expected = true;
                    lab.press();
                }
                Some(value) => {
                    expected &= value & 1 == 0;
                    lab.write(value);
                }
            }
            prop_assert_eq!((lab.read(), lab.line), (u64::from(expected), expected));
            let mut bytes = vec![0; lab.button.state_bytes()];
            prop_assert_eq!(lab.button.save(&mut bytes), Ok(bytes.len()));
            let mut next = PowerButton::new();
            prop_assert_eq!(next.restore(1, &bytes), Ok(()));
            prop_assert_eq!(&next, &lab.button);
        }
    }
}

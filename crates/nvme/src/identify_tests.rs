// SPDX-License-Identifier: MIT OR Apache-2.0
//! Serial numbers of controllers that work, and of those that do not.

use std::cell::RefCell;

use proptest::prelude::*;

use crate::model::{ADDRESS, Controller, Fault, Seam};
use crate::registers::{CC, CSTS, INTMS};
use crate::{Problem, Serial, serial};

fn ask(controller: &RefCell<Controller>) -> Result<Serial, Problem> {
    serial(&mut Seam(controller), &mut Seam(controller), ADDRESS)
}

fn with_fault(fault: Fault) -> RefCell<Controller> {
    RefCell::new(Controller { fault, ..Controller::new("S5GXNX0T") })
}

#[test]
fn a_controller_that_was_left_enabled_reports_its_number_and_is_disabled() {
    let controller = with_fault(Fault::None);
    assert_eq!(ask(&controller).unwrap().as_str(), "S5GXNX0T");
    let controller = controller.borrow();
    assert_eq!((controller.register(CC) & 1, controller.register(CSTS)), (0, 0));
    assert_eq!(controller.register(INTMS), u32::MAX, "no interrupt is sent");
}

#[test]
fn the_command_set_is_one_that_the_controller_supports() {
    for (bit, selected) in [(37, 0), (43, 0b110), (44, 0b111)] {
        let mut controller = Controller::new("A");
        controller.capabilities = 1 << bit | 2 << 24;
        let controller = RefCell::new(controller);
        ask(&controller).unwrap();
        assert_eq!(controller.borrow().register(CC) >> 4 & 0b111, selected, "CAP bit {bit}");
    }
}

#[test]
fn each_fault_has_its_name_and_ends() {
    for (fault, problem) in [
        (Fault::NeverReady, Problem::NotReady),
        (Fault::NeverDisabled, Problem::NotReady),
        (Fault::Fatal, Problem::Fatal),
        (Fault::Unresponsive, Problem::NoCompletion),
        (Fault::Status(0x002), Problem::Refused(2)),
        (Fault::VanishesAfter(0), Problem::Gone),
        (Fault::VanishesAfter(4), Problem::Gone),
    ] {
        let controller = with_fault(fault);
        assert_eq!(ask(&controller), Err(problem), "{fault:?}");
        assert!(controller.borrow().pauses <= 25_000_000);
        let is_there = !matches!(fault, Fault::VanishesAfter(_));
        assert!(!is_there || controller.borrow().register(CC) & 1 == 0, "{fault:?}: it stays disabled");
    }
    let pages = RefCell::new(Controller { capabilities: 1 << 48, ..Controller::new("A") });
    assert_eq!(ask(&pages), Err(Problem::PageSize(8192)));
}

#[test]
fn a_field_that_is_no_text_is_refused() {
    for field in [[b' '; 20], [0; 20], [0x1b; 20], [0xff; 20]] {
        let controller = RefCell::new(Controller { serial: field, ..Controller::new("") });
        assert_eq!(ask(&controller), Err(Problem::NotText), "{field:?}");
    }
    let mut field = [0; 20];
    field[..3].copy_from_slice(b" A1");
    let controller = RefCell::new(Controller { serial: field, ..Controller::new("") });
    assert_eq!(ask(&controller).unwrap().as_str(), "A1");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a controller states and whenever it vanishes, the answer is a number or a reason.
    #[test]
    fn nothing_goes_on_for_ever(capabilities in any::<u64>(), field in any::<[u8; 20]>(), vanishes in 0u32..40) {
        let controller = Controller { capabilities, serial: field, ..Controller::new("") };
        let controller = RefCell::new(Controller { fault: Fault::VanishesAfter(vanishes), ..controller });
        if let Ok(serial) = ask(&controller) {
            prop_assert_eq!(Serial::new(serial.as_str()), Some(serial));
        }
        prop_assert!(controller.borrow().pauses <= 25_000_000);
    }

    /// A number reads as it is written.
    #[test]
    fn numbers_are_read_as_written(text in "[!-~]([ -~]{0,18}[!-~])?") {
        let controller = RefCell::new(Controller::new(&text));
        prop_assert_eq!(ask(&controller), Ok(Serial::new(&text).unwrap()));
    }
}

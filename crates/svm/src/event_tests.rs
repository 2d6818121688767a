// SPDX-License-Identifier: MIT OR Apache-2.0
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::{prop_assert, prop_assert_eq, proptest};
use vm::vcpu::{Event, Exception};

use super::{deliver, forget, redeliver, request_window, take_back, undelivered, withdraw};
use crate::intercept::Misc1;
use crate::vmcb::{Clean, Control, EventInjection, Vmcb, event_type};

fn control() -> Control {
    let mut control = Vmcb::zeroed().control;
    control.clean = Clean::all();
    control
}

fn interrupt(vector: u8) -> EventInjection {
    EventInjection::new().with_is_valid(true).with_kind(event_type::INTERRUPT).with_vector(vector)
}

/// The guest leaves without having executed anything but, if `info` says so, half a delivery.
fn leave(control: &mut Control, info: EventInjection) {
    control.exit_interrupt_info = info;
    control.clean = Clean::all();
    take_back(control, false);
}

#[test]
fn an_interrupt_is_a_virtual_one_that_is_not_intercepted() {
    let mut control = control();
    deliver(&mut control, Event::Interrupt(0x30));
    let offered = control.virtual_interrupt;
    assert!(offered.is_pending() && offered.ignore_tpr() && !control.intercept_misc1.contains(Misc1::VINTR));
    assert_eq!((offered.vector(), offered.priority()), (0x30, 15));
    assert!(!control.event_injection.is_valid());
    assert!(!control.clean.contains(Clean::VIRTUAL_INTERRUPT), "the processor is to read it");
    assert_eq!(undelivered(&control), interrupt(0x30));
}

#[test]
fn one_that_was_not_taken_stands_and_one_that_was_is_gone() {
    let mut control = control();
    deliver(&mut control, Event::Interrupt(0x30));
    leave(&mut control, EventInjection::new());
    assert_eq!(undelivered(&control), interrupt(0x30));
    control.virtual_interrupt.set_is_pending(false);
    leave(&mut control, EventInjection::new());
    assert!(!undelivered(&control).is_valid());
}

#[test]
fn one_half_delivered_is_offered_anew_whatever_the_processor_calls_it() {
    for kind in [event_type::INTERRUPT, event_type::EXCEPTION] {
        let mut control = control();
        leave(&mut control, interrupt(0x30).with_kind(kind));
        assert_eq!(undelivered(&control), interrupt(0x30));
        assert!(control.virtual_interrupt.is_pending() && !control.event_injection.is_valid());
    }
}

#[test]
fn an_interrupt_is_offered_until_it_is_withdrawn_and_a_window_does_not_displace_it() {
    let mut control = control();
    deliver(&mut control, Event::Interrupt(0x30));
    for wanted in [true, false] {
        request_window(&mut control, wanted);
        assert_eq!(undelivered(&control), interrupt(0x30));
        assert!(!control.event_injection.is_valid() && !control.intercept_misc1.contains(Misc1::VINTR));
    }
    assert_eq!(withdraw(&mut control), Some(0x30));
    assert!(!undelivered(&control).is_valid() && !control.virtual_interrupt.is_pending());
    request_window(&mut control, true);
    assert!(control.virtual_interrupt.is_pending() && control.intercept_misc1.contains(Misc1::VINTR));
    assert_eq!(withdraw(&mut control), None, "a window is no interrupt");
}

#[test]
fn event_injection_never_has_an_external_interrupt() {
    let mut control = control();
    deliver(&mut control, Event::Exception(Exception::InvalidOpcode));
    request_window(&mut control, true);
    leave(&mut control, interrupt(0x30));
    assert_eq!(undelivered(&control), interrupt(0x30));
    assert!(!control.event_injection.is_valid() && !control.intercept_misc1.contains(Misc1::VINTR));
}

#[test]
fn what_is_forgotten_is_neither_delivered_nor_waited_for() {
    for is_window in [false, true] {
        let mut control = control();
        deliver(&mut control, Event::Interrupt(0x30));
        request_window(&mut control, is_window);
        forget(&mut control);
        assert!(!undelivered(&control).is_valid() && !control.virtual_interrupt.is_pending());
        assert!(!control.intercept_misc1.contains(Misc1::VINTR));
    }
}

/// What can be done to a control block between two entries.
#[derive(Clone, Debug)]
enum Step {
    Deliver(u8),
    Fault,
    Window(bool),
    LeaveAtOnce,
    LeaveHalfWay,
    Enter,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (32u8..=255).prop_map(Step::Deliver),
        Just(Step::Fault),
        any::<bool>().prop_map(Step::Window),
        Just(Step::LeaveAtOnce),
        Just(Step::LeaveHalfWay),
        Just(Step::Enter),
    ]
}

proptest! {
    /// Each event is delivered once, in whatever way it is told of, and windows stand when they are wanted.
    #[test]
    fn an_event_is_neither_lost_nor_delivered_twice(steps in proptest::collection::vec(step(), 1..40)) {
        let mut control = control();
        let mut expected = EventInjection::new();
        let mut is_wanted = false;
        for step in steps {
            match step {
                Step::Deliver(vector) if !expected.is_valid() => {
                    deliver(&mut control, Event::Interrupt(vector));
                    expected = interrupt(vector);
                    // The machine says anew what it waits for.
                    request_window(&mut control, is_wanted);
                }
                Step::Fault if !expected.is_valid() => {
                    deliver(&mut control, Event::Exception(Exception::InvalidOpcode));
                    expected = undelivered(&control);
                }
                Step::Deliver(_) | Step::Fault => {}
                Step::Window(wanted) => {
                    request_window(&mut control, wanted);
                    is_wanted = wanted;
                }
                // The processor leaves EVENTINJ as it is and says that nothing was under way: it was never looked at.
                Step::LeaveAtOnce => {
                    let waits = control.event_injection;
                    leave(&mut control, waits);
                }
                Step::LeaveHalfWay => leave(&mut control, expected),
                Step::Enter => {
                    if !control.intercept_misc1.contains(Misc1::VINTR) {
                        control.virtual_interrupt.set_is_pending(false);
                    }
                    leave(&mut control, EventInjection::new());
                    expected = EventInjection::new();
                }
            }
            prop_assert_eq!(undelivered(&control), expected);
            prop_assert!(!is_wanted || control.virtual_interrupt.is_pending() || !control.intercept_misc1.contains(Misc1::VINTR));
        }
    }

    #[test]
    fn what_another_image_left_undelivered_is_delivered(vector in 32u8..=255, code in any::<u32>()) {
        let fault = interrupt(14).with_kind(event_type::EXCEPTION).with_has_error_code(true).with_error_code(code);
        for event in [interrupt(vector), fault, EventInjection::new()] {
            let mut control = control();
            redeliver(&mut control, event);
            prop_assert_eq!(undelivered(&control), event);
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
use proptest::prelude::{Just, Strategy, TestCaseError, any, prop_oneof};
use proptest::{prop_assert, prop_assert_eq, proptest};
use vm::vcpu::{Event, Exception};

use super::{clear, deliver, redeliver, request_window, requeue_undelivered, undelivered, withdraw};
use crate::intercept::Misc1;
use crate::vmcb::{Clean, Control, EventInjection, VirtualInterrupt, Vmcb, event_type};

fn control() -> Control {
    let mut control = Vmcb::zeroed().control;
    control.clean = Clean::all();
    control
}

fn interrupt(vector: u8) -> EventInjection {
    EventInjection::new().with_is_valid(true).with_kind(event_type::INTERRUPT).with_vector(vector)
}

/// The guest leaves without having executed anything but, if `info` is valid, half a delivery.
fn leave(control: &mut Control, info: EventInjection) {
    control.exit_interrupt_info = info;
    control.clean = Clean::all();
    requeue_undelivered(control, false);
}

#[test]
fn an_interrupt_is_a_virtual_one_that_is_not_intercepted() {
    let mut control = control();
    deliver(&mut control, Event::Interrupt(0x30));
    let offered = control.virtual_interrupt;
    assert!(offered.is_pending() && offered.ignore_tpr() && !control.intercept_misc1.contains(Misc1::VINTR));
    assert_eq!((offered.vector(), offered.priority()), (0x30, 15));
    assert!(!control.event_injection.is_valid());
    assert!(!control.clean.contains(Clean::VIRTUAL_INTERRUPT), "the CPU is to read it");
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
fn one_half_delivered_is_offered_again_whatever_the_cpu_calls_it() {
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
fn a_cleared_event_is_neither_delivered_nor_waited_for() {
    for is_window in [false, true] {
        let mut control = control();
        deliver(&mut control, Event::Interrupt(0x30));
        request_window(&mut control, is_window);
        clear(&mut control);
        assert!(!undelivered(&control).is_valid() && !control.virtual_interrupt.is_pending());
        assert!(!control.intercept_misc1.contains(Misc1::VINTR));
    }
}

/// Change to a control block between two entries.
#[derive(Clone, Debug)]
enum Step {
    Deliver(u8),
    Fault,
    Withdraw,
    Window(bool),
    LeaveAtOnce,
    LeaveHalfWay,
    Enter,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (32u8..=255).prop_map(Step::Deliver),
        Just(Step::Fault),
        Just(Step::Withdraw),
        any::<bool>().prop_map(Step::Window),
        Just(Step::LeaveAtOnce),
        Just(Step::LeaveHalfWay),
        Just(Step::Enter),
    ]
}

/// A control block, and the state expected of it.
struct Model {
    control: Control,
    /// The event that the next entry delivers.
    expected: EventInjection,
    is_wanted: bool,
    /// The fields that the CPU has last read from the block.
    seen: (VirtualInterrupt, Misc1),
}

impl Model {
    fn new() -> Self {
        let control = control();
        let seen = (control.virtual_interrupt, control.intercept_misc1);
        Self { control, expected: EventInjection::new(), is_wanted: false, seen }
    }

    fn apply(&mut self, step: Step) {
        let expects_interrupt = self.expected.is_valid() && self.expected.kind() == event_type::INTERRUPT;
        match step {
            Step::Deliver(vector) if !self.expected.is_valid() => {
                deliver(&mut self.control, Event::Interrupt(vector));
                self.expected = interrupt(vector);
            }
            Step::Fault if !self.expected.is_valid() => {
                deliver(&mut self.control, Event::Exception(Exception::InvalidOpcode));
                self.expected = undelivered(&self.control);
            }
            Step::Deliver(_) | Step::Fault => {}
            Step::Withdraw => {
                let offered = expects_interrupt.then_some(self.expected.vector());
                assert_eq!(withdraw(&mut self.control), offered);
                if expects_interrupt {
                    self.expected = EventInjection::new();
                }
            }
            Step::Window(wanted) => self.is_wanted = wanted,
            // The CPU reports EVENTINJ's event in EXITINTINFO, and an offered interrupt is still pending.
            Step::LeaveAtOnce => {
                let waits = self.control.event_injection;
                self.leave(waits);
            }
            Step::LeaveHalfWay => self.leave(self.expected),
            Step::Enter => {
                // An intercepted one stays pending: its exit comes before it is taken (15.21.4).
                if !self.control.intercept_misc1.contains(Misc1::VINTR) {
                    self.control.virtual_interrupt.set_is_pending(false);
                }
                self.leave(EventInjection::new());
                self.expected = EventInjection::new();
            }
        }
    }

    fn leave(&mut self, info: EventInjection) {
        self.seen = (self.control.virtual_interrupt, self.control.intercept_misc1);
        leave(&mut self.control, info);
    }

    /// The machine prepares an entry, as it does before each: an event is delivered once, and the window stands exactly
    /// while it is wanted and no interrupt is offered. A virtual interrupt is one or the other, and is never
    /// intercepted for nothing.
    fn prepare(&mut self) -> Result<(), TestCaseError> {
        request_window(&mut self.control, self.is_wanted);
        prop_assert_eq!(undelivered(&self.control), self.expected);
        let is_offered = self.expected.is_valid() && self.expected.kind() == event_type::INTERRUPT;
        let has_window = self.is_wanted && !is_offered;
        let now = self.control.virtual_interrupt;
        prop_assert_eq!(self.control.intercept_misc1.contains(Misc1::VINTR), has_window);
        prop_assert_eq!(now.is_pending(), has_window || is_offered);
        prop_assert!(!now.is_pending() || now.ignore_tpr(), "CR8 is the local APIC's to heed");
        let (seen_interrupt, seen_intercepts) = self.seen;
        let clean = self.control.clean;
        prop_assert!(now == seen_interrupt || !clean.contains(Clean::VIRTUAL_INTERRUPT), "the CPU is to read it");
        let is_intercept_seen = self.control.intercept_misc1 == seen_intercepts;
        prop_assert!(is_intercept_seen || !clean.contains(Clean::INTERCEPTS), "the CPU is to read them");
        Ok(())
    }
}

proptest! {
    /// Each event is delivered once, in whatever way it is reported, and a window stands exactly when it is wanted and
    /// nothing is offered.
    #[test]
    fn an_event_is_neither_lost_nor_delivered_twice(steps in proptest::collection::vec(step(), 1..40)) {
        let mut model = Model::new();
        for step in steps {
            model.apply(step);
            model.prepare()?;
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

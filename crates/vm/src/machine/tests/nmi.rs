// SPDX-License-Identifier: MIT OR Apache-2.0
//! One NMI at a time, until its handler's IRET has been executed.
use super::interrupts::{edge, nmi};
use super::*;

/// Where the handler runs, and its IRET.
const HANDLER: u64 = 0x2000;
const IRET: u64 = 0x2010;

/// A guest that has just entered its NMI handler.
fn in_handler() -> Lab {
    let mut lab = Lab::new();
    lab.send_nmi();
    assert_eq!(lab.enter(), Some(Event::Nmi));
    lab.vcpu.rip = HANDLER;
    lab
}

impl Lab {
    fn send_nmi(&mut self) {
        self.machine.send(&mut self.processor, &mut self.host, &nmi());
    }

    /// The guest comes to the IRET of its handler.
    fn comes_to_iret(&mut self) {
        self.vcpu.rip = IRET;
        assert_eq!(self.handle(Exit::InterruptReturn), Outcome::Resume);
    }
}

#[test]
fn an_nmi_waits_for_the_end_of_the_handler_of_the_one_before_it() {
    let mut lab = in_handler();
    assert!(lab.vcpu.interrupt_return_watched);
    lab.send_nmi();
    lab.send_nmi();
    assert_eq!(lab.enter(), None);
    assert!(!lab.vcpu.window_requested, "the handler's IRET exits");
    lab.comes_to_iret();
    assert!(!lab.vcpu.interrupt_return_watched);
    assert_eq!(lab.enter(), None, "it has not returned yet");
    lab.vcpu.rip = RIP;
    assert_eq!(lab.enter(), Some(Event::Nmi));
    lab.comes_to_iret();
    lab.vcpu.rip = RIP;
    assert_eq!(lab.enter(), None, "two that wait are one");
}

#[test]
fn a_processor_that_returns_is_looked_at_soon() {
    let mut lab = in_handler();
    lab.comes_to_iret();
    assert_eq!(lab.enter(), None);
    assert_eq!(lab.host.alarm, None, "nobody waits for it");
    lab.send_nmi();
    assert_eq!(lab.enter(), None);
    let alarm = lab.host.alarm.expect("a look");
    assert!(alarm - lab.host.tsc < 1_000_000);
    lab.vcpu.rip = RIP;
    lab.pass(alarm - lab.host.tsc);
    assert_eq!(lab.enter(), Some(Event::Nmi));
    lab.pass(1);
    assert_eq!(lab.host.alarm, None);
}

#[test]
fn an_nmi_behind_an_event_comes_although_the_guest_never_enables_interrupts() {
    let mut lab = Lab::new();
    lab.vcpu.injected = Some(Event::Exception(Exception::InvalidOpcode));
    lab.send_nmi();
    assert_eq!(lab.enter(), Some(Event::Exception(Exception::InvalidOpcode)));
    let alarm = lab.host.alarm.expect("a look");
    lab.pass(alarm - lab.host.tsc);
    lab.handle(Exit::HostInterrupt);
    assert_eq!(lab.enter(), Some(Event::Nmi));
}

#[test]
fn interrupts_come_into_a_handler_that_enables_them() {
    let mut lab = in_handler();
    lab.send_nmi();
    lab.machine.send(&mut lab.processor, &mut lab.host, &edge(0x41));
    assert_eq!(lab.take_interrupt(), Some(0x41));
}

#[test]
fn an_nmi_in_a_handler_does_not_wake_it_from_its_halt() {
    let mut lab = in_handler();
    lab.set_interrupts(true);
    lab.send_nmi();
    assert_eq!(lab.executed(&[0xf4], Exit::Halt), Outcome::Idle);
    assert!(!lab.machine.prepare_entry(&mut lab.vcpu, &mut lab.processor, &mut lab.host));
    lab.machine.send(&mut lab.processor, &mut lab.host, &edge(0x41));
    assert!(lab.machine.prepare_entry(&mut lab.vcpu, &mut lab.processor, &mut lab.host));
}

#[test]
fn an_init_in_a_handler_forgets_it() {
    let mut lab = Lab::with_vcpus(2, false);
    lab.wrmsr(0x1b, 0xfee0_0c00).unwrap();
    lab.wrmsr(SPURIOUS, ENABLED).unwrap();
    let mut second = Processor::new(1, false, START, 0x1234, Arc::default());
    let mut vcpu = FakeVcpu::default();
    let mut enter = |lab: &mut Lab, vcpu: &mut FakeVcpu| {
        lab.machine.prepare_entry(vcpu, &mut second, &mut lab.host);
        vcpu.injected.take()
    };
    // INIT, start-up, NMI; the same again while the handler runs.
    for _ in 0..2 {
        for command in [5 << 8 | 1 << 14, 6 << 8 | 3] {
            lab.wrmsr(0x830, 1 << 32 | command).unwrap();
            assert_eq!(enter(&mut lab, &mut vcpu), None);
        }
        lab.wrmsr(0x830, 1 << 32 | 4 << 8).unwrap();
        assert_eq!(enter(&mut lab, &mut vcpu), Some(Event::Nmi));
        assert!(vcpu.interrupt_return_watched);
    }
}

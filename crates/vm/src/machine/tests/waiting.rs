// SPDX-License-Identifier: MIT OR Apache-2.0
//! HLT.
use super::*;

#[test]
fn a_guest_that_halts_waits_and_is_woken_by_an_interrupt() {
    let mut lab = Lab::new();
    lab.set_interrupts(true);
    assert_eq!(lab.executed(&[0xf4], Exit::Halt), Outcome::Idle);
    assert!(!lab.context().prepare_entry(), "nothing to do");
    lab.send(&interrupts::edge(0x40));
    assert!(lab.context().prepare_entry());
    assert_eq!(lab.vcpu.injected, Some(Event::Interrupt(0x40)));
}

#[test]
fn an_interrupt_that_came_before_the_halt_ends_it_at_once() {
    let mut lab = Lab::new();
    lab.set_interrupts(true);
    lab.send(&interrupts::edge(0x40));
    assert_eq!(lab.executed(&[0xf4], Exit::Halt), Outcome::Idle);
    assert!(lab.context().prepare_entry());
}

#[test]
fn a_guest_that_halts_with_interrupts_off_is_stopped() {
    let mut lab = Lab::new();
    assert_eq!(lab.executed(&[0xf4], Exit::Halt), Outcome::Stop(Stop::Fault(Fault::HaltedForever)));
}

#[test]
fn an_nmi_that_is_on_its_way_ends_even_that_halt() {
    let mut lab = Lab::new();
    lab.send(&interrupts::nmi());
    assert_eq!(lab.executed(&[0xf4], Exit::Halt), Outcome::Resume);
    assert!(lab.context().prepare_entry());
    assert_eq!(lab.vcpu.injected, Some(Event::Nmi));
}

/// A machine with a second CPU, which waits for its start-up.
fn two() -> (Lab, Cpu, FakeVcpu) {
    let mut lab = Lab::with_vcpus(2, false);
    lab.wrmsr(0x1b, 0xfee0_0c00).unwrap();
    lab.wrmsr(SPURIOUS, ENABLED).unwrap();
    let second = Cpu::new(1, false, START, 0x1234, Arc::new(ExitStatistics::new()));
    (lab, second, FakeVcpu::default())
}

/// Starts the second CPU at 0x3000.
fn start_second(lab: &mut Lab) {
    lab.wrmsr(0x830, 1 << 32 | 5 << 8 | 1 << 14).unwrap();
    lab.wrmsr(0x830, 1 << 32 | 6 << 8 | 1 << 14 | 3).unwrap();
}

#[test]
fn a_cpu_may_halt_for_good_as_soon_as_it_has_started_another() {
    let (mut lab, mut second, mut vcpu) = two();
    assert!(!lab.machine.context(&mut vcpu, &mut second, &mut lab.host).prepare_entry());
    start_second(&mut lab);
    assert_eq!(lab.executed(&[0xf4], Exit::Halt), Outcome::Idle, "the other has not checked yet");
    assert!(lab.machine.context(&mut vcpu, &mut second, &mut lab.host).prepare_entry());
    assert_eq!((second.activity(), vcpu.segments[SegmentName::Cs as usize].base), (Activity::Running, 0x3000));
    lab.machine.memory().write(Gpa(0x3000), &[0xf4]).unwrap();
    let outcome = lab.machine.context(&mut vcpu, &mut second, &mut lab.host).handle(Exit::Halt);
    assert_eq!(outcome, Outcome::Stop(Stop::Fault(Fault::HaltedForever)), "both have");
}

#[test]
fn a_cpu_may_halt_for_good_as_soon_as_it_has_sent_another_an_nmi() {
    let (mut lab, mut second, mut vcpu) = two();
    start_second(&mut lab);
    lab.machine.context(&mut vcpu, &mut second, &mut lab.host).prepare_entry();
    lab.machine.memory().write(Gpa(0x3000), &[0xf4]).unwrap();
    assert_eq!(lab.machine.context(&mut vcpu, &mut second, &mut lab.host).handle(Exit::Halt), Outcome::Idle);
    assert_eq!(second.activity(), Activity::HaltedForGood);
    lab.wrmsr(0x830, 1 << 32 | 4 << 8 | 1 << 14).unwrap();
    assert_eq!(lab.executed(&[0xf4], Exit::Halt), Outcome::Idle);
    assert!(lab.machine.context(&mut vcpu, &mut second, &mut lab.host).prepare_entry());
    assert_eq!((second.activity(), vcpu.injected), (Activity::Running, Some(Event::Nmi)));
}

#[test]
fn the_host_never_comes_between_sti_and_the_halt_it_shadows() {
    let mut lab = Lab::new();
    lab.at(&[0xf4]);
    lab.vcpu.rflags |= Rflags::INTERRUPT.bits();
    lab.vcpu.is_in_interrupt_shadow = true;
    assert_eq!(lab.handle(Exit::HostInterrupt), Outcome::HostInterrupt);
    assert_eq!((lab.vcpu.rip, lab.cpu.activity()), (RIP + 1, Activity::Halted));
    assert!(!lab.context().prepare_entry(), "it waits");
    lab.send(&interrupts::edge(0x40));
    assert!(lab.context().prepare_entry(), "and wakes");
    assert_eq!(lab.vcpu.injected, Some(Event::Interrupt(0x40)));
}

#[test]
fn any_other_instruction_in_the_shadow_is_the_guests() {
    let mut lab = Lab::new();
    lab.at(&[0x90]);
    lab.vcpu.is_in_interrupt_shadow = true;
    assert_eq!(lab.handle(Exit::HostInterrupt), Outcome::HostInterrupt);
    assert_eq!((lab.vcpu.rip, lab.cpu.activity()), (RIP, Activity::Running));
}

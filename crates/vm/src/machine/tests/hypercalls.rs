// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hypercalls of guests whose vCPUs share CPUs, and the flush that a preempted one is asked for.

use std::vec;

use handover::image::Reader;

use super::super::mailbox::PendingEvents;
use super::*;
use crate::cpu::msr::number::KVM_STEAL_TIME;

const KICK_CPU: u64 = 5;
const SEND_IPI: u64 = 10;
const SCHED_YIELD: u64 = 11;
const NO_SUCH_HYPERCALL: u64 = -1000i64 as u64;
const NOT_PERMITTED: u64 = -1i64 as u64;
const INVALID: u64 = -22i64 as u64;
const AREA: u64 = 0x4000;

/// A machine of this many CPUs, the first of which runs in 64-bit mode.
fn lab(vcpus: u32) -> Lab {
    let mut lab = Lab::with_vcpus(vcpus, false);
    lab.machine.cpuid.show_paravirtual();
    lab.machine.is_paravirtual = lab.machine.cpuid.is_paravirtual();
    lab.vcpu.segments[SegmentName::Cs as usize].rights = AccessRights::CODE_64;
    lab.wrmsr(0x1b, 0xfee0_0c00).unwrap();
    lab.wrmsr(SPURIOUS, ENABLED).unwrap();
    lab
}

/// Returns the result, and how the CPU goes on.
fn call(lab: &mut Lab, number: u64, arguments: [u64; 4]) -> (u64, Outcome) {
    let [rbx, rcx, rdx, rsi] = arguments;
    lab.vcpu.gprs[Gpr::Rax as usize] = number;
    lab.vcpu.gprs[Gpr::Rbx as usize] = rbx;
    lab.vcpu.gprs[Gpr::Rcx as usize] = rcx;
    lab.vcpu.gprs[Gpr::Rdx as usize] = rdx;
    lab.vcpu.gprs[Gpr::Rsi as usize] = rsi;
    let outcome = lab.executed(&[0x0f, 0x01, 0xd9], Exit::Hypercall);
    (lab.vcpu.gprs[Gpr::Rax as usize], outcome)
}

/// Another CPU of the machine, which runs.
fn other(lab: &Lab, id: u32) -> (Cpu, FakeVcpu) {
    let mut cpu = Cpu::new(id, false, START, 0, Arc::default());
    lab.machine.set_activity(&mut cpu, Activity::Running);
    (cpu, FakeVcpu { rip: RIP, xcr0: 1, ..FakeVcpu::default() })
}

/// It executes HLT with interrupts off.
fn halts(lab: &mut Lab, cpu: &mut Cpu, vcpu: &mut FakeVcpu) -> Outcome {
    lab.at(&[0xf4]);
    vcpu.rip = RIP;
    lab.machine.context(vcpu, cpu, &mut lab.host).handle(Exit::Halt)
}

#[test]
fn a_guest_that_is_shown_no_such_features_has_no_hypercalls() {
    let mut lab = Lab::with_vcpus(2, false);
    lab.vcpu.segments[SegmentName::Cs as usize].rights = AccessRights::CODE_64;
    for number in [0, KICK_CPU, SEND_IPI, SCHED_YIELD, u64::MAX] {
        assert_eq!(call(&mut lab, number, [1, 1, 0, 0x40]), (NO_SUCH_HYPERCALL, Outcome::Resume), "{number}");
    }
    assert!(lab.host.kicked.is_empty());
}

#[test]
fn features_are_shown_all_together() {
    let mut lab = lab(2);
    lab.vcpu.gprs[Gpr::Rax as usize] = 0x4000_0001;
    lab.executed(&[0x0f, 0xa2], Exit::Cpuid);
    let shown = lab.vcpu.gprs[Gpr::Rax as usize];
    assert!([5, 7, 9, 11, 13].iter().all(|bit| shown >> bit & 1 != 0), "{shown:#x}");
    assert_eq!(call(&mut lab, 1, [0; 4]).0, NO_SUCH_HYPERCALL, "one that KVM has, and this one has not");
}

#[test]
fn user_mode_has_no_hypercalls() {
    let mut lab = lab(2);
    lab.vcpu.cpl = 3;
    for number in [KICK_CPU, SEND_IPI, SCHED_YIELD] {
        assert_eq!(call(&mut lab, number, [2, 1, 0, 0x40]).0, NOT_PERMITTED, "{number}");
    }
    assert!(lab.host.kicked.is_empty());
}

#[test]
fn a_kick_wakes_a_cpu_that_has_halted_with_interrupts_off() {
    let mut lab = lab(2);
    let (mut cpu, mut vcpu) = other(&lab, 1);
    assert!(!lab.machine.others(&lab.cpu).may_be_woken, "it runs");
    assert_eq!(halts(&mut lab, &mut cpu, &mut vcpu), Outcome::Idle);
    assert!(!lab.machine.context(&mut vcpu, &mut cpu, &mut lab.host).prepare_entry());
    assert!(lab.machine.others(&lab.cpu).may_be_woken && lab.machine.others(&lab.cpu).halted_for_good);
    assert_eq!(call(&mut lab, KICK_CPU, [0, 1, 0, 0]), (0, Outcome::Resume));
    assert_eq!(lab.host.kicked, [1]);
    assert!(lab.machine.context(&mut vcpu, &mut cpu, &mut lab.host).prepare_entry());
    assert_eq!((cpu.activity(), vcpu.injected), (Activity::Running, None));
    assert!(!lab.machine.others(&lab.cpu).halted_for_good);
}

#[test]
fn a_kick_that_comes_before_the_halt_is_not_lost() {
    let mut lab = lab(2);
    let (mut cpu, mut vcpu) = other(&lab, 1);
    call(&mut lab, KICK_CPU, [0, 1, 0, 0]);
    assert!(lab.machine.context(&mut vcpu, &mut cpu, &mut lab.host).prepare_entry());
    assert_eq!(halts(&mut lab, &mut cpu, &mut vcpu), Outcome::Resume, "once");
    assert_eq!((vcpu.rip, cpu.activity()), (RIP + 1, Activity::Running));
    assert_eq!(halts(&mut lab, &mut cpu, &mut vcpu), Outcome::Idle, "and not again");
}

#[test]
fn a_cpu_that_kicks_itself_or_none_does_no_harm() {
    let mut lab = lab(2);
    for id in [2, 0xffff_ffff, u64::MAX] {
        assert_eq!(call(&mut lab, KICK_CPU, [0, id, 0, 0]), (0, Outcome::Resume));
    }
    assert_eq!(call(&mut lab, KICK_CPU, [0, 0, 0, 0]), (0, Outcome::Resume));
    assert!(lab.host.kicked.is_empty());
    assert_eq!(lab.executed(&[0xf4], Exit::Halt), Outcome::Resume);
    assert_eq!(lab.executed(&[0xf4], Exit::Halt), Outcome::Stop(Stop::Fault(Fault::HaltedForever)));
}

#[test]
fn a_cpu_that_waits_for_its_startup_is_not_woken() {
    let mut lab = lab(2);
    let (mut cpu, mut vcpu) = (Cpu::new(1, false, START, 0, Arc::default()), FakeVcpu::default());
    call(&mut lab, KICK_CPU, [0, 1, 0, 0]);
    assert!(!lab.machine.context(&mut vcpu, &mut cpu, &mut lab.host).prepare_entry());
    assert_eq!(cpu.activity(), Activity::WaitingForStartup);
    assert!(!cpu.is_unhalted);
}

#[test]
fn one_hypercall_interrupts_many() {
    let mut lab = lab(70);
    lab.set_interrupts(true);
    let low = 1 | 1 << 2 | 1 << 63;
    assert_eq!(call(&mut lab, SEND_IPI, [low, 0b11, 0, 0xfb]).0, 5);
    assert_eq!(lab.host.kicked, [2, 63, 64, 65]);
    assert_eq!(lab.take_interrupt(), Some(0xfb), "its own");
    lab.host.kicked.clear();
    assert_eq!(call(&mut lab, SEND_IPI, [u64::MAX, u64::MAX, 68, 0xfb]).0, 2, "there are no more");
    assert_eq!(lab.host.kicked, [68, 69]);
    assert_eq!(call(&mut lab, SEND_IPI, [u64::MAX, u64::MAX, u64::MAX - 1, 0xfb]).0, 0);
    let (mut cpu, _) = other(&lab, 69);
    let events = lab.machine.mailboxes[69].take(&mut cpu.lapic);
    assert_eq!(events, PendingEvents::default());
}

#[test]
fn an_nmi_goes_that_way_too_and_nothing_else_does() {
    let mut lab = lab(2);
    assert_eq!(call(&mut lab, SEND_IPI, [0b10, 0, 0, 0b100 << 8 | 1 << 14]).0, 1);
    let (mut cpu, _) = other(&lab, 1);
    assert_eq!(lab.machine.mailboxes[1].take(&mut cpu.lapic).early_nmis, 1);
    // INIT, start-up, lowest priority; a shorthand, a destination; a vector of an exception.
    for command in [0b101 << 8, 0b110 << 8, 0b001 << 8 | 0x40, 1 << 18 | 0x40, 1 << 56 | 0x40, 0x0f] {
        assert_eq!(call(&mut lab, SEND_IPI, [0b10, 0, 0, command]).0, INVALID, "{command:#x}");
    }
    assert!(!lab.machine.mailboxes[1].has_pending());
}

#[test]
fn a_32_bit_caller_has_32_targets_in_a_register() {
    let mut lab = lab(70);
    lab.vcpu.segments[SegmentName::Cs as usize].rights = AccessRights::CODE_16;
    let high = 0xffff_ffff_0000_0000;
    assert_eq!(call(&mut lab, SEND_IPI | high, [high | 0b10, high | 0b1, high, high | 0x40]).0, 2);
    assert_eq!(lab.host.kicked, [1, 32]);
}

#[test]
fn a_cpu_yields_to_one_on_the_same_real_cpu() {
    let mut lab = lab(3);
    lab.host.neighbours = vec![2];
    assert_eq!(call(&mut lab, SCHED_YIELD, [1, 0, 0, 0]), (0, Outcome::Resume));
    assert_eq!(call(&mut lab, SCHED_YIELD, [2, 0, 0, 0]), (0, Outcome::Yield));
    assert_eq!(call(&mut lab, SCHED_YIELD, [u64::MAX, 0, 0, 0]), (0, Outcome::Resume));
}

#[test]
fn a_preempted_cpu_flushes_its_tlb_when_another_has_asked() {
    let mut lab = lab(2);
    lab.wrmsr(KVM_STEAL_TIME, AREA | 1).unwrap();
    lab.machine.mark_preempted(&lab.cpu);
    assert!(!lab.machine.publish_steal(&mut lab.cpu, 1));
    lab.machine.mark_preempted(&lab.cpu);
    let preempted = lab.machine.memory().bytes(Gpa(AREA + 16), 1)[0];
    lab.machine.memory().write(Gpa(AREA + 16), &[preempted | 2]).unwrap();
    assert!(lab.machine.publish_steal(&mut lab.cpu, 2));
    assert_eq!(lab.machine.memory().bytes(Gpa(AREA + 16), 4), [0; 4]);
    lab.machine.is_paravirtual = false;
    lab.machine.memory().write(Gpa(AREA + 16), &[3]).unwrap();
    assert!(!lab.machine.publish_steal(&mut lab.cpu, 3), "a guest that was not shown this asks for nothing");
}

#[test]
fn a_wake_up_is_part_of_what_the_next_image_gets() {
    for taken in [false, true] {
        let mut lab = lab(1);
        assert!(lab.machine.mailboxes[0].unhalt());
        if taken {
            lab.context().prepare_entry();
            assert!(lab.cpu.is_unhalted);
        }
        let mut next = lab.carried();
        assert!(next.machine.is_paravirtual);
        next.context().prepare_entry();
        assert_eq!(next.executed(&[0xf4], Exit::Halt), Outcome::Resume);
    }
}

#[test]
fn an_older_image_does_not_get_a_guest_with_hypercalls() {
    assert!(!lab(1).machine.can_be_read_by(Reader::of(3)));
    assert!(lab(1).machine.can_be_read_by(Reader::of(4)));
    assert!(Lab::with_vcpus(1, false).machine.can_be_read_by(Reader::of(3)));
}

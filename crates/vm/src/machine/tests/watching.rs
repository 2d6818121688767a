// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU seen from outside.

use super::*;
use crate::vcpu::VcpuState;

#[test]
fn a_clock_read_is_seen_once_and_executed_then() {
    let mut lab = Lab::new();
    assert_eq!(lab.cpu.take_clock_read(), None);
    lab.vcpu.watch_clock_reads(true);
    lab.vcpu.rip = 0x1234;
    assert_eq!(lab.handle(Exit::ClockRead), Outcome::Resume);
    assert!(!lab.vcpu.clock_reads_watched, "the next one is not stopped");
    assert_eq!(lab.vcpu.rip, 0x1234, "the guest executes it itself");
    assert_eq!(lab.cpu.take_clock_read(), Some(0x1234));
    assert_eq!(lab.cpu.take_clock_read(), None);
}

#[test]
fn a_local_apic_in_memory_is_no_device_that_counts() {
    let mut lab = Lab::with_xapic();
    let before = lab.cpu.io_accesses();
    lab.store(Gpa(0xfee0_00b0), 0);
    assert_eq!(lab.cpu.io_accesses(), before);
    let mut lab = Lab::new();
    let before = lab.cpu.io_accesses();
    lab.wrmsr(EOI, 0).unwrap();
    assert_eq!(lab.cpu.io_accesses(), before, "nor is one in registers");
    lab.store(Gpa(0xfec0_0000), 0);
    assert_eq!(lab.cpu.io_accesses(), before + 1);
}

#[test]
fn who_halts_with_interrupts_off_has_halted_for_good() {
    let mut lab = Lab::with_vcpus(2, false);
    let mut other = Cpu::new(1, false, START, 0, Arc::default());
    let others = |can_run, halted_for_good| Others { can_run, halted_for_good, may_be_woken: false };
    assert_eq!(lab.machine.others(&lab.cpu), others(false, false));
    lab.machine.set_activity(&mut other, Activity::Running);
    assert_eq!(lab.machine.others(&lab.cpu), others(true, false));
    lab.machine.set_activity(&mut other, Activity::Halted);
    assert_eq!(lab.machine.others(&lab.cpu), others(true, false));
    lab.machine.set_activity(&mut other, Activity::HaltedForGood);
    assert_eq!(lab.machine.others(&lab.cpu), others(false, true));
    lab.machine.set_activity(&mut other, Activity::WaitingForStartup);
    assert_eq!(lab.machine.others(&lab.cpu), others(false, false));
    lab.machine.set_activity(&mut lab.cpu, Activity::Running);
}

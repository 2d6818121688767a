// SPDX-License-Identifier: MIT OR Apache-2.0
//! The local APIC's timer and the host's alarm.
use super::*;
use crate::cpu::msr::number;

const TIMER_VECTOR: u32 = 0x832;
const INITIAL_COUNT: u32 = 0x838;
const DEADLINE_MODE: u64 = 2 << 17;
const PERIODIC: u64 = 1 << 17;
const VECTOR: u8 = 0xec;

fn lab(mode: u64) -> Lab {
    let mut lab = Lab::new();
    lab.wrmsr(TIMER_VECTOR, mode | u64::from(VECTOR)).unwrap();
    lab
}

#[test]
fn a_deadline_arms_the_alarm_in_the_hosts_time_and_interrupts_when_it_comes() {
    let mut lab = lab(DEADLINE_MODE);
    lab.wrmsr(number::TSC_DEADLINE, 500).unwrap();
    assert_eq!(lab.host.alarm, Some(START + 500));
    assert_eq!(lab.rdmsr(number::TSC_DEADLINE), Ok(500));
    lab.pass(499);
    assert_eq!(lab.take_interrupt(), None);
    lab.pass(1);
    assert_eq!(lab.take_interrupt(), Some(VECTOR));
    assert_eq!((lab.host.alarm, lab.rdmsr(number::TSC_DEADLINE)), (None, Ok(0)));
}

#[test]
fn an_alarm_that_goes_off_early_is_armed_again() {
    let mut lab = lab(DEADLINE_MODE);
    lab.wrmsr(number::TSC_DEADLINE, 500).unwrap();
    lab.host.tsc += 100;
    lab.machine.alarm(&mut lab.cpu, &mut lab.host);
    assert_eq!((lab.take_interrupt(), lab.host.alarm), (None, Some(START + 500)));
}

#[test]
fn zero_stops_the_timer_and_its_alarm() {
    let mut lab = lab(DEADLINE_MODE);
    lab.wrmsr(number::TSC_DEADLINE, 500).unwrap();
    lab.wrmsr(number::TSC_DEADLINE, 0).unwrap();
    assert_eq!(lab.host.alarm, None);
}

#[test]
fn a_deadline_beyond_the_hosts_counter_does_not_go_off_at_once() {
    let mut lab = lab(DEADLINE_MODE);
    lab.wrmsr(number::TSC_DEADLINE, u64::MAX).unwrap();
    assert_eq!(lab.host.alarm, Some(u64::MAX));
    assert_eq!(lab.cpu.next_alarm(), Some(u64::MAX));
}

#[test]
fn a_deadline_that_has_passed_is_due_now() {
    let mut lab = lab(DEADLINE_MODE);
    lab.pass(100);
    lab.wrmsr(number::TSC_DEADLINE, 50).unwrap();
    assert_eq!(lab.host.alarm, Some(START + 100));
    lab.pass(0);
    assert_eq!(lab.take_interrupt(), Some(VECTOR));
}

#[test]
fn setting_the_counter_arms_a_deadline_again_and_leaves_a_count_alone() {
    let mut deadline = lab(DEADLINE_MODE);
    deadline.wrmsr(number::TSC_DEADLINE, 500).unwrap();
    deadline.wrmsr(number::TSC, 400).unwrap();
    assert_eq!(deadline.host.alarm, Some(START + 100));
    let mut count = lab(0);
    count.wrmsr(INITIAL_COUNT, 250).unwrap();
    count.wrmsr(number::TSC, 1 << 40).unwrap();
    assert_eq!(count.host.alarm, Some(START + 500), "250 counts of two ticks");
    count.pass(500);
    assert_eq!(count.take_interrupt(), Some(VECTOR));
}

#[test]
fn a_periodic_timer_goes_on() {
    let mut lab = lab(PERIODIC);
    lab.wrmsr(INITIAL_COUNT, 50).unwrap();
    for period in 1..4 {
        assert_eq!(lab.host.alarm, Some(START + 100 * period));
        lab.pass(100);
        assert_eq!(lab.take_interrupt(), Some(VECTOR));
        lab.wrmsr(EOI, 0).unwrap();
    }
}

#[test]
fn periods_that_were_slept_through_are_one_interrupt() {
    let mut lab = lab(PERIODIC);
    lab.wrmsr(INITIAL_COUNT, 50).unwrap();
    lab.pass(1050);
    assert_eq!(lab.host.alarm, Some(START + 1100));
    assert_eq!(lab.take_interrupt(), Some(VECTOR));
    lab.wrmsr(EOI, 0).unwrap();
    assert_eq!(lab.take_interrupt(), None);
}

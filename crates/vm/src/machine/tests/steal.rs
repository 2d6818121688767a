// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stolen time, as a guest asks for it and reads it.
use super::*;
use crate::cpu::msr::number::KVM_STEAL_TIME;

const AREA: u64 = 0x4000;

fn reported_ns(lab: &Lab) -> u64 {
    lab.machine.memory().read_u64(Gpa(AREA)).unwrap()
}

#[test]
fn cpuid_offers_stolen_time_and_the_register_reads_back() {
    let mut lab = Lab::new();
    lab.vcpu.gprs[Gpr::Rax as usize] = 0x4000_0001;
    lab.executed(&[0x0f, 0xa2], Exit::Cpuid);
    assert_eq!(lab.vcpu.gprs[Gpr::Rax as usize] >> 5 & 1, 1);
    assert_eq!(lab.rdmsr(KVM_STEAL_TIME), Ok(0));
    assert_eq!(lab.wrmsr(KVM_STEAL_TIME, AREA | 1), Ok(()));
    assert_eq!(lab.rdmsr(KVM_STEAL_TIME), Ok(AREA | 1));
}

#[test]
fn an_area_that_is_not_aligned_is_a_general_protection_fault() {
    let mut lab = Lab::new();
    assert_eq!(lab.wrmsr(KVM_STEAL_TIME, AREA | 0x20 | 1), Err(Exception::GeneralProtection(0)));
    assert_eq!(lab.rdmsr(KVM_STEAL_TIME), Ok(0));
}

#[test]
fn the_guest_reads_what_was_stolen_since_it_asked() {
    let mut lab = Lab::new();
    let _ = lab.machine.publish_steal(&mut lab.cpu, 1_000);
    lab.wrmsr(KVM_STEAL_TIME, AREA | 1).unwrap();
    lab.machine.mark_preempted(&lab.cpu);
    assert_eq!(lab.machine.memory().bytes(Gpa(AREA + 16), 1), [1]);
    let _ = lab.machine.publish_steal(&mut lab.cpu, 1_250);
    assert_eq!((reported_ns(&lab), lab.machine.memory().bytes(Gpa(AREA + 16), 1)), (250, std::vec![0]));
}

#[test]
fn an_area_outside_of_memory_does_no_harm() {
    let mut lab = Lab::new();
    assert_eq!(lab.wrmsr(KVM_STEAL_TIME, 0xffff_ffff_ffff_ffc0 | 1), Ok(()));
    let _ = lab.machine.publish_steal(&mut lab.cpu, 5);
    lab.machine.mark_preempted(&lab.cpu);
}

#[test]
fn the_next_image_goes_on_where_the_last_one_was() {
    let mut lab = Lab::new();
    lab.wrmsr(KVM_STEAL_TIME, AREA | 1).unwrap();
    let _ = lab.machine.publish_steal(&mut lab.cpu, 100);
    let mut next = lab.carried();
    let _ = next.machine.publish_steal(&mut next.cpu, 130);
    assert_eq!(reported_ns(&next), 130);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! States that no machine can be in are refused, and the field is named.

use handover::state::{CpuidLeaf, ExtensionKind, Policy, Vcpu, event_state, mail_flag, more_nmi};
use zerocopy::{FromBytes, FromZeros};

use super::*;

/// The field for which a vCPU is refused; it stays as it was.
fn vcpu(spoil: impl FnOnce(&mut Vcpu)) -> &'static str {
    let lab = Lab::new();
    let mut carried = lab.carried();
    let mut state = Vcpu::new_zeroed();
    lab.machine.save_vcpu(&lab.vcpu, &lab.cpu, &mut state);
    spoil(&mut state);
    let error = carried.machine.restore_vcpu(&state, &mut carried.vcpu, &mut carried.cpu).expect_err("refused");
    assert_eq!(carried.hand_over(), lab.hand_over(), "what is refused changes nothing");
    error.field
}

#[test]
fn vcpus_that_cannot_be_are_refused() {
    assert_eq!(vcpu(|s| s.lapic.id = 1.into()), "lapic.id");
    assert_eq!(vcpu(|s| s.lapic.task_priority = 256.into()), "lapic.task_priority");
    assert_eq!(vcpu(|s| s.lapic.spurious = u32::MAX.into()), "lapic.spurious");
    assert_eq!(vcpu(|s| s.registers.efer = efer::SVME.into()), "registers.efer");
    assert_eq!(vcpu(|s| s.registers.xcr0 = 0.into()), "registers.xcr0");
    assert_eq!(vcpu(|s| s.registers.xcr0 = (1 << 17 | 1).into()), "registers.xcr0");
    assert_eq!(vcpu(|s| s.registers.pat = 2.into()), "registers.pat");
    assert_eq!(vcpu(|s| s.events.activity = 0.into()), "events.activity");
    assert_eq!(vcpu(|s| s.events.nmi_gate = 9.into()), "events.nmi_gate");
    assert_eq!(vcpu(|s| s.events.flags = 16.into()), "events.flags");
    assert_eq!(vcpu(|s| s.events.flags = event_state::EOI_OFFERED.into()), "events.flags");
    assert_eq!(vcpu(|s| s.events.eoi_area = 2.into()), "events.eoi_area");
    assert_eq!(vcpu(|s| s.time.clock_version = 1.into()), "clock.version");
    assert_eq!(vcpu(|s| s.time.steal_area = 4.into()), "steal_time.msr");
    assert_eq!(vcpu(|s| s.watch.flags = 8.into()), "watch.flags");
    assert_eq!(vcpu(|s| s.turn.wants_to_run = 2.into()), "watch.flags");
    assert_eq!(vcpu(|s| s.msrs.hwcr = u64::MAX.into()), "msr.hwcr");
    assert_eq!(vcpu(|s| s.mail.start = 0x1000.into()), "mail.start");
    assert_eq!(vcpu(|s| s.mail.start = 0x9a.into()), "mail.start");
    assert_eq!(vcpu(|s| s.mail.start = mail_flag::LATE_NMI.into()), "mail.start");
    assert_eq!(vcpu(|s| s.mail.is_level[0] = 1.into()), "mail.is_level");
    assert_eq!(vcpu(|s| s.more_nmis.flags = more_nmi::PENDING.into()), "more_nmis.flags");
    assert_eq!(vcpu(|s| s.more_nmis.flags = more_nmi::EARLY.into()), "more_nmis.flags");
    assert_eq!(vcpu(|s| s.more_nmis.flags = more_nmi::LATE.into()), "more_nmis.flags");
    assert_eq!(vcpu(|s| s.more_nmis.flags = 8.into()), "more_nmis.flags");
    assert_eq!(vcpu(|s| s.extension.kind = (ExtensionKind::Vmx as u32).into()), "extension.kind");
}

fn policy(spoil: impl FnOnce(&mut Policy, &mut Vec<u8>)) -> &'static str {
    let (mut state, mut tail) = (Policy::new_zeroed(), vec![0; 4096]);
    let used = Lab::new().machine.save_policy(&mut state, &mut tail).unwrap();
    tail.truncate(used);
    spoil(&mut state, &mut tail);
    Machine::adopt(FakeMemory::new(1), &state, &tail).map(drop).expect_err("refused").field
}

/// Changes the leaf of this number.
fn leaf(tail: &mut [u8], number: u32, spoil: impl FnOnce(&mut CpuidLeaf)) {
    let leaves = <[CpuidLeaf]>::mut_from_bytes(tail).unwrap();
    spoil(leaves.iter_mut().find(|leaf| leaf.leaf.get() == number).unwrap());
}

#[test]
fn policies_that_cannot_be_are_refused() {
    assert_eq!(policy(|s, _| s.vcpus = 0.into()), "policy.vcpus");
    assert_eq!(policy(|s, _| s.vcpus = u32::MAX.into()), "policy.vcpus");
    assert_eq!(policy(|s, _| s.flags = 2.into()), "policy.flags");
    assert_eq!(policy(|s, _| s.leaves = 0.into()), "policy.leaves");
    assert_eq!(policy(|_, tail| tail.truncate(tail.len() - 1)), "policy.leaves");
    assert_eq!(policy(|s, _| s.scale_multiplier = 0.into()), "policy.scale");
    for shift in [0x80u32, 11, 0x100] {
        assert_eq!(policy(|s, _| s.scale_shift = shift.into()), "policy.scale");
    }
}

#[test]
fn a_cpuid_that_no_guest_was_shown_is_refused() {
    let refused = |number, spoil: fn(&mut CpuidLeaf)| policy(|_, tail| leaf(tail, number, spoil));
    for spoil in [
        |leaf: &mut CpuidLeaf| leaf.leaf = 0x17.into(),
        |leaf: &mut CpuidLeaf| leaf.subleaf = 1.into(),
        |leaf: &mut CpuidLeaf| leaf.leaf = 0.into(),
        |leaf: &mut CpuidLeaf| leaf.ecx = u32::MAX.into(),
        |leaf: &mut CpuidLeaf| leaf.ebx = u32::MAX.into(),
    ] {
        assert_eq!(refused(1, spoil), "policy.cpuid");
    }
    assert_eq!(refused(0, |leaf| leaf.eax = 0x17.into()), "policy.cpuid");
    assert_eq!(refused(0x8000_0000, |leaf| leaf.eax = 0.into()), "policy.cpuid");
    assert_eq!(refused(0xd, |leaf| leaf.eax = 4.into()), "policy.cpuid");
    assert_eq!(refused(0xd, |leaf| leaf.ebx = 4.into()), "policy.cpuid");
}

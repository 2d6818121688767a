// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instructions that always leave the guest: CPUID, XSETBV, VMMCALL and the like.
use super::*;

#[test]
fn cpuid_is_answered_from_the_table_and_gone_past() {
    let mut lab = Lab::new();
    lab.vcpu.gprs = [u64::MAX; 16];
    lab.vcpu.gprs[Gpr::Rax as usize] = 0xffff_ffff_4000_0000;
    assert_eq!(lab.executed(&[0x0f, 0xa2], Exit::Cpuid), Outcome::Resume);
    let answer = [Gpr::Rbx, Gpr::Rcx, Gpr::Rdx].map(|register| lab.vcpu.gprs[register as usize]);
    assert_eq!(answer, [0x4b4d_564b, 0x564b_4d56, 0x4d], "KVM's signature, upper halves cleared");
    assert_eq!(lab.cpu.exits.get(ExitKind::Cpuid), 1);
}

#[test]
fn a_prefixed_cpuid_is_skipped_whole() {
    let mut lab = Lab::new();
    lab.executed(&[0x66, 0xf2, 0x48, 0x0f, 0xa2], Exit::Cpuid);
}

#[test]
fn the_end_that_the_cpu_names_is_believed() {
    let mut lab = Lab::new();
    lab.vcpu.next_rip = Some(RIP + 9);
    lab.executed(&[0x0f, 0xa2, 0, 0, 0, 0, 0, 0, 0], Exit::Cpuid);
}

#[test]
fn cpuid_shows_osxsave_as_soon_as_the_guest_has_set_it() {
    let mut lab = Lab::new();
    let mut osxsave = |cr4| {
        lab.vcpu.cr4 = cr4;
        lab.vcpu.gprs[Gpr::Rax as usize] = 1;
        lab.executed(&[0x0f, 0xa2], Exit::Cpuid);
        lab.vcpu.gprs[Gpr::Rcx as usize] & 1 << 27 != 0
    };
    assert!(!osxsave(0));
    assert!(osxsave(1 << 18));
}

#[test]
fn an_instruction_that_is_none_any_more_is_undefined_and_changes_no_register() {
    let mut lab = Lab::new();
    lab.vcpu.gprs = [7; 16];
    assert_eq!(lab.raised(&[0xff; 15], Exit::Cpuid), Exception::InvalidOpcode);
    assert_eq!(lab.vcpu.gprs, [7; 16]);
}

#[test]
fn xsetbv_sets_what_the_guest_may_have() {
    let mut lab = Lab::new();
    lab.vcpu.cr4 = 1 << 18;
    let xsetbv = |lab: &mut Lab, value: u64| {
        lab.vcpu.gprs[Gpr::Rcx as usize] = 0;
        lab.vcpu.gprs[Gpr::Rax as usize] = value;
        lab.vcpu.gprs[Gpr::Rdx as usize] = 0;
        lab.at(&[0x0f, 0x01, 0xd1]);
        lab.handle(Exit::Xsetbv);
        lab.result(3)
    };
    assert_eq!(xsetbv(&mut lab, 7), Ok(()));
    assert_eq!(lab.vcpu.xcr0, 7);
    assert_eq!(xsetbv(&mut lab, 4), Err(Exception::GeneralProtection(0)), "AVX without SSE");
    lab.vcpu.cpl = 3;
    assert_eq!(xsetbv(&mut lab, 3), Err(Exception::GeneralProtection(0)), "user mode");
    assert_eq!(lab.vcpu.xcr0, 7);
}

#[test]
fn a_hypercall_is_answered_as_by_a_monitor_that_has_none() {
    let mut lab = Lab::new();
    lab.executed(&[0x0f, 0x01, 0xd9], Exit::Hypercall);
    assert_eq!(lab.vcpu.gprs[Gpr::Rax as usize] as i64, -1000);
}

#[test]
fn what_the_cpu_does_not_have_raises_an_exception() {
    let mut lab = Lab::new();
    assert_eq!(lab.raised(&[0x0f, 0x01, 0xd8], Exit::AbsentInstruction), Exception::InvalidOpcode);
    assert_eq!(lab.raised(&[0x0f, 0x33], Exit::CounterRead), Exception::GeneralProtection(0));
}

#[test]
fn caches_are_flushed_by_going_past() {
    let mut lab = Lab::new();
    lab.executed(&[0x0f, 0x09], Exit::CacheFlush);
    lab.executed(&[0x0f, 0x08], Exit::CacheFlush);
}

#[test]
fn exits_without_an_answer_stop_the_guest_with_a_reason() {
    let mut lab = Lab::new();
    let mut reason = |exit| match lab.handle(exit) {
        Outcome::Stop(stop) => std::format!("{stop}"),
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(Exit::Shutdown), "triple fault: its handler for a double fault faulted");
    assert_eq!(reason(Exit::EntryRefused), "its CPU is in a state that cannot run");
    lab.vcpu.refusal = Some("EFER.SVME is clear");
    let mut reason = |exit| match lab.handle(exit) {
        Outcome::Stop(stop) => std::format!("{stop}"),
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(Exit::EntryRefused), "its CPU is in a state that cannot run: EFER.SVME is clear");
    assert_eq!(reason(Exit::Unknown { code: 0x99 }), "its CPU left for an unknown reason, 0x99");
}

#[test]
fn the_hosts_own_interrupts_are_handed_back_to_it() {
    let mut lab = Lab::new();
    for exit in [Exit::HostInterrupt, Exit::HostNmi] {
        assert_eq!(lab.handle(exit), Outcome::HostInterrupt);
    }
    assert_eq!(lab.vcpu.rip, RIP + 2, "no instruction is gone past");
    assert_eq!(lab.cpu.exits.get(ExitKind::HostInterrupt), 2);
}

#[test]
fn a_machine_check_is_handed_to_the_host_and_the_guest_is_as_it_was() {
    let mut lab = Lab::new();
    let before = lab.vcpu.rip;
    assert_eq!(lab.handle(Exit::MachineCheck), Outcome::MachineCheck);
    assert_eq!(lab.vcpu.rip, before, "no instruction is gone past");
}

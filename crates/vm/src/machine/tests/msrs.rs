// SPDX-License-Identifier: MIT OR Apache-2.0
//! One register of every class that `msr` knows.
use super::*;
use crate::cpu::msr::number;

const GP: Exception = Exception::GeneralProtection(0);

#[test]
fn absent_registers_are_refused_both_ways() {
    let mut lab = Lab::new();
    for absent in [0, 0x1234, 0x4b56_4d02, 0xc000_0104, 0xc001_0117, u32::MAX] {
        assert_eq!(lab.rdmsr(absent), Err(GP), "{absent:#x}");
        assert_eq!(lab.wrmsr(absent, 0), Err(GP), "{absent:#x}");
    }
}

#[test]
fn registers_that_the_guest_owns_never_come_here() {
    let mut lab = Lab::new();
    for &owned in crate::cpu::msr::OWNED_BY_GUEST {
        assert_eq!((lab.rdmsr(owned), lab.wrmsr(owned, 0)), (Err(GP), Err(GP)), "{owned:#x}");
    }
}

#[test]
fn a_prefixed_rdmsr_is_skipped_whole() {
    let mut lab = Lab::new();
    lab.vcpu.gprs[Gpr::Rcx as usize] = number::PAT.into();
    lab.executed(&[0x48, 0x0f, 0x32], Exit::MsrRead);
}

#[test]
fn efer_follows_the_guest_but_for_svm() {
    let mut lab = Lab::new();
    assert_eq!(lab.rdmsr(number::EFER), Ok(efer::LMA | efer::LME), "the host's SVME is not shown");
    assert_eq!(lab.wrmsr(number::EFER, efer::LME | efer::SVME), Err(GP));
    assert_eq!(lab.wrmsr(number::EFER, efer::LME | efer::NXE | efer::SCE), Ok(()));
    assert_eq!(lab.rdmsr(number::EFER), Ok(efer::LMA | efer::LME | efer::NXE | efer::SCE));
    lab.vcpu.cr0 |= cr0::PG;
    lab.vcpu.next_rip = Some(RIP + 2);
    assert_eq!(lab.wrmsr(number::EFER, 0), Err(GP), "long mode cannot be left while paging");
}

#[test]
fn the_page_attribute_table_refuses_types_that_do_not_exist() {
    let mut lab = Lab::new();
    assert_eq!(lab.wrmsr(number::PAT, 0x0007_0406_0007_0106), Ok(()));
    assert_eq!(lab.rdmsr(number::PAT), Ok(0x0007_0406_0007_0106));
    assert_eq!(lab.wrmsr(number::PAT, 2), Err(GP));
    assert_eq!(lab.vcpu.pat, 0x0007_0406_0007_0106);
}

#[test]
fn plain_registers_keep_what_may_be_written() {
    let mut lab = Lab::new();
    assert_eq!(lab.rdmsr(number::MICROCODE_REVISION), Ok(0x1234_0000_1234));
    assert_eq!(lab.wrmsr(number::MCG_STATUS, 4), Ok(()));
    assert_eq!(lab.rdmsr(number::MCG_STATUS), Ok(4));
    assert_eq!(lab.wrmsr(number::MCG_CAP, 1), Err(GP), "a constant");
}

#[test]
fn the_local_apics_base_and_registers_follow_its_mode() {
    let mut lab = Lab::after_power_on(false);
    assert_eq!(lab.rdmsr(number::APIC_BASE), Ok(0xfee0_0900));
    assert_eq!(lab.rdmsr(0x802), Err(GP), "x2APIC registers in xAPIC mode");
    assert_eq!(lab.wrmsr(number::APIC_BASE, 0xfee0_0400), Err(GP), "x2APIC mode without the enable bit");
    assert_eq!(lab.wrmsr(number::APIC_BASE, 0xfee0_0c00), Ok(()));
    assert_eq!(lab.rdmsr(0x802), Ok(0));
    assert_eq!(lab.wrmsr(0x803, 0), Err(GP), "the version cannot be written");
}

#[test]
fn the_counter_starts_at_zero_and_runs_with_the_hosts() {
    let mut lab = Lab::new();
    lab.host.tsc = START + 5;
    assert_eq!(lab.rdmsr(number::TSC), Ok(5));
}

/// Returns what a guest reads out of its clock area: the counter at the time, and the time.
fn clock(lab: &Lab) -> (u64, u64) {
    let bytes = lab.machine.memory().bytes(Gpa(0x2000), 32);
    let quad = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    (quad(8), quad(16))
}

#[test]
fn setting_the_counter_moves_the_clock_with_it() {
    let mut lab = Lab::new();
    assert_eq!(lab.wrmsr(number::KVM_SYSTEM_TIME, 0x2001), Ok(()));
    assert_eq!(lab.rdmsr(number::KVM_SYSTEM_TIME), Ok(0x2001));
    assert_eq!(clock(&lab), (0, 0), "at the counter's zero it is the guest's start");
    lab.host.tsc = START + 300;
    assert_eq!(lab.wrmsr(number::TSC, 0x1_0000_0000), Ok(()));
    assert_eq!(lab.vcpu.tsc_offset, 0x1_0000_0000u64.wrapping_sub(START + 300));
    assert_eq!(clock(&lab), (0x1_0000_0000 - 300, 0), "300 ticks ago was the guest's start, still");
    assert_eq!(lab.rdmsr(number::TSC), Ok(0x1_0000_0000));
}

#[test]
fn a_clock_area_outside_memory_does_no_harm() {
    let mut lab = Lab::new();
    assert_eq!(lab.wrmsr(number::KVM_SYSTEM_TIME, 0xffff_ffff_ffff_fff1), Ok(()));
    assert_eq!(lab.wrmsr(number::KVM_WALL_CLOCK, 0xffff_ffff_ffff_fffc), Ok(()));
    assert_eq!(lab.wrmsr(number::KVM_SYSTEM_TIME, 0x2002), Err(GP), "reserved bit");
}

#[test]
fn the_wall_clock_is_written_where_the_guest_wants_it() {
    let mut lab = Lab::new();
    assert_eq!(lab.wrmsr(number::KVM_WALL_CLOCK, 0x3000), Ok(()));
    let seconds = lab.machine.memory().bytes(Gpa(0x3004), 4);
    assert_eq!(seconds, 1_700_000_000u32.to_le_bytes());
    assert_eq!(lab.rdmsr(number::KVM_WALL_CLOCK), Ok(0));
}

#[test]
fn amds_legacy_counters_of_a_guest_without_counters_read_zero_and_ignore_writes() {
    let mut lab = Lab::new();
    for counter in number::PERF_CTL0..=number::PERF_CTR3 {
        assert_eq!(lab.wrmsr(counter, 0x43_0076), Ok(()), "{counter:#x}");
        assert_eq!(lab.rdmsr(counter), Ok(0), "{counter:#x}");
    }
    assert_eq!(lab.rdmsr(number::PERF_CTR3 + 1), Err(GP));
    let mut intel = Lab::of(&intel_cpuid, 1, false);
    assert_eq!((intel.rdmsr(number::PERF_CTL0), intel.wrmsr(number::PERF_CTL0, 0)), (Err(GP), Err(GP)));
}

/// The same host with Intel's name.
fn intel_cpuid(leaf: u32, subleaf: u32) -> CpuidResult {
    match leaf {
        0 => CpuidResult { eax: 0x16, ebx: 0x756e_6547, ecx: 0x6c65_746e, edx: 0x4965_6e69 },
        _ => host_cpuid(leaf, subleaf),
    }
}

#[test]
fn miscellaneous_enables_are_intels_alone() {
    let mut lab = Lab::new();
    assert_eq!((lab.rdmsr(number::MISC_ENABLE), lab.wrmsr(number::MISC_ENABLE, 0x1801)), (Err(GP), Err(GP)));
    let mut intel = Lab::of(&intel_cpuid, 1, false);
    assert_eq!(intel.rdmsr(number::MISC_ENABLE), Ok(0x1801));
    assert_eq!(lab.carried().rdmsr(number::MISC_ENABLE), Err(GP), "in the next image too");
}

#[test]
fn a_guest_that_was_shown_miscellaneous_enables_keeps_them() {
    let mut shown = Lab::new().carried_in(3);
    assert_eq!(shown.rdmsr(number::MISC_ENABLE), Ok(0x1801));
    assert_eq!(shown.carried().rdmsr(number::MISC_ENABLE), Ok(0x1801));
}

#[test]
fn the_apics_page_is_where_addresses_reach() {
    let mut lab = Lab::after_power_on(false);
    assert_eq!(lab.wrmsr(number::APIC_BASE, 1 << 36 | 0xfee0_0900), Err(GP), "36 bits where CPUID reports nothing");
    assert_eq!(lab.wrmsr(number::APIC_BASE, 1 << 35 | 0xfee0_0900), Ok(()));
}

#[test]
fn cpuid_has_no_apic_while_it_is_disabled() {
    const APIC: u64 = 1 << 9;
    let mut lab = Lab::after_power_on(false);
    let shows = |lab: &mut Lab, leaf: u64| {
        (lab.vcpu.gprs[Gpr::Rax as usize], lab.vcpu.gprs[Gpr::Rcx as usize]) = (leaf, 0);
        lab.executed(&[0x0f, 0xa2], Exit::Cpuid);
        lab.vcpu.gprs[Gpr::Rdx as usize] & APIC != 0
    };
    assert!(shows(&mut lab, 1) && shows(&mut lab, 0x8000_0001));
    lab.wrmsr(number::APIC_BASE, 0xfee0_0100).unwrap();
    assert!(!shows(&mut lab, 1) && !shows(&mut lab, 0x8000_0001));
    lab.wrmsr(number::APIC_BASE, 0xfee0_0900).unwrap();
    assert!(shows(&mut lab, 1) && shows(&mut lab, 0x8000_0001));
}

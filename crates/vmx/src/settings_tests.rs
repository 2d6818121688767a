// SPDX-License-Identifier: MIT OR Apache-2.0
use std::string::ToString;

use super::*;
use crate::msr;
use crate::testing::Cpu;

fn bounds(cpu: &Cpu) -> Bounds {
    let capabilities = cpu.read().expect("they do not contradict each other");
    Bounds { capabilities, physical_bits: 46, linear_bits: 48, perf_global_ctrl: 0 }
}

/// A CPU without some controls.
fn without(msr: u32, exact: u32, bit: u32) -> Cpu {
    let mut cpu = Cpu::complete();
    for register in [msr, exact] {
        cpu.set(register, cpu.get(register) & !(1 << (bit + 32)));
    }
    cpu
}

#[test]
fn a_complete_cpu_has_all_that_is_needed_and_nothing_that_is_set_only_at_times() {
    let settings = Settings::for_cpu(bounds(&Cpu::complete())).unwrap();
    assert!(ALWAYS.iter().chain(WHERE_THERE).all(|control| settings.controls.has(*control)));
    assert!(AT_TIMES.iter().chain(NEVER).all(|control| !settings.controls.has(*control)));
}

#[test]
fn a_guest_sees_no_vmx_and_its_own_ne_and_mce() {
    let settings = Settings::for_cpu(bounds(&Cpu::complete())).unwrap();
    assert_eq!(settings.owned_cr0(), 0x20, "NE");
    assert_eq!((settings.owned_cr4(), settings.hidden_cr4()), (0x2040, 0x2000), "VMXE and MCE");
}

#[test]
fn a_cpu_without_unrestricted_guests_or_ept_is_refused_by_name() {
    let old = without(msr::PROCBASED_CTLS2, msr::PROCBASED_CTLS2, 7);
    let text = Settings::for_cpu(bounds(&old)).unwrap_err().to_string();
    assert!(text.contains("unrestricted guest") && text.contains("IA32_VMX_PROCBASED_CTLS2"), "{text}");
    let older = without(msr::PROCBASED_CTLS2, msr::PROCBASED_CTLS2, 1);
    let text = Settings::for_cpu(bounds(&older)).unwrap_err().to_string();
    assert!(text.contains("enable EPT"), "{text}");
}

#[test]
fn a_cpu_without_vpid_runs_guests() {
    let cpu = without(msr::PROCBASED_CTLS2, msr::PROCBASED_CTLS2, 5);
    let settings = Settings::for_cpu(bounds(&cpu)).unwrap();
    assert!(!settings.controls.has(Control::EnableVpid));
    let mut cpu = Cpu::complete();
    cpu.set(msr::EPT_VPID_CAP, cpu.get(msr::EPT_VPID_CAP) & !(1 << 41));
    let settings = Settings::for_cpu(bounds(&cpu)).unwrap();
    assert!(!settings.controls.has(Control::EnableVpid), "translations that cannot be flushed by their tag");
}

#[test]
fn a_cpu_that_requires_exits_which_nothing_answers_is_refused() {
    let mut cpu = Cpu::complete();
    for register in [msr::PROCBASED_CTLS, msr::TRUE_PROCBASED_CTLS] {
        cpu.set(register, cpu.get(register) | Control::Cr3LoadExiting.bit());
    }
    let unusable = Settings::for_cpu(bounds(&cpu)).unwrap_err();
    assert!(matches!(unusable, Unusable::Forced { control: Control::Cr3LoadExiting, .. }), "{unusable}");
}

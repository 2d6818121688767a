// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers that control speculation: present where CPUID shows them, kept across an update, and absent elsewhere.

use handover::image::Reader;

use super::*;
use crate::cpu::cpuid::Speculation;
use crate::devices::StateError;

const SPEC_CTRL: u32 = 0x48;
const PRED_CMD: u32 = 0x49;
const DE_CFG: u32 = 0xc001_1029;
/// IBPB, IBRS, STIBP, SSBD.
const SIZES_EBX: u32 = 1 << 12 | 1 << 14 | 1 << 15 | 1 << 24;

fn lab(sizes_ebx: u32) -> Lab {
    let host = |leaf: u32, subleaf: u32| match leaf {
        0x8000_0008 => CpuidResult { ebx: sizes_ebx, ..CpuidResult::default() },
        _ => host_cpuid(leaf, subleaf),
    };
    let mut lab = Lab::new();
    lab.machine.cpuid =
        CpuidTable::new(&host, &CpuidConfig { vcpus: 1, tsc_khz: 3_000_000, apic_timer_khz: 3_000_000 });
    lab
}

fn write(lab: &mut Lab, number: u32, value: u64) -> Outcome {
    lab.vcpu.gprs[Gpr::Rcx as usize] = number.into();
    lab.vcpu.gprs[Gpr::Rax as usize] = value & 0xffff_ffff;
    lab.vcpu.gprs[Gpr::Rdx as usize] = value >> 32;
    lab.executed(&[0x0f, 0x30], Exit::MsrWrite)
}

#[test]
fn a_guest_has_the_bits_of_spec_ctrl_that_cpuid_shows() {
    let mut lab = lab(SIZES_EBX);
    assert_eq!(lab.machine.speculation(), Speculation { spec_ctrl: 0b111, has_ibpb: true });
    assert_eq!(lab.rdmsr(SPEC_CTRL), Ok(0));
    assert_eq!(write(&mut lab, SPEC_CTRL, 0b101), Outcome::CountsOtherwise, "the world switch is chosen again");
    assert_eq!((lab.rdmsr(SPEC_CTRL), lab.vcpu.spec_ctrl), (Ok(0b101), 0b101));
    for refused in [1 << 3, 1 << 7, 1 << 32] {
        assert_eq!(lab.wrmsr(SPEC_CTRL, refused), Err(Exception::GeneralProtection(0)));
    }
    assert_eq!(lab.vcpu.spec_ctrl, 0b101);
}

#[test]
fn a_guest_that_is_shown_none_has_none() {
    let mut lab = lab(0);
    assert!(!lab.machine.speculation().is_offered());
    for number in [SPEC_CTRL, PRED_CMD] {
        assert_eq!(lab.rdmsr(number), Err(Exception::GeneralProtection(0)));
        assert_eq!(lab.wrmsr(number, 0), Err(Exception::GeneralProtection(0)));
    }
}

#[test]
fn de_cfg_states_whether_lfence_serializes_and_takes_nothing_else() {
    let mut lab = lab(0);
    assert_eq!(lab.rdmsr(DE_CFG), Ok(2));
    assert_eq!(lab.wrmsr(DE_CFG, 2), Ok(()));
    assert!(lab.wrmsr(DE_CFG, 0).is_err());
    lab.machine.set_lfence_serializes(false);
    assert_eq!(lab.rdmsr(DE_CFG), Ok(0));
    assert!(lab.wrmsr(DE_CFG, 2).is_err());
}

#[test]
fn spec_ctrl_is_handed_over_in_an_update_and_only_to_a_guest_that_was_shown_it() {
    let mut from = lab(SIZES_EBX);
    write(&mut from, SPEC_CTRL, 0b100);
    let mut saved = <handover::state::Vcpu as zerocopy::FromZeros>::new_zeroed();
    from.machine.save_vcpu(&from.vcpu, &from.cpu, &mut saved);
    let mut to = lab(SIZES_EBX);
    to.machine.restore_vcpu(&saved, &mut to.vcpu, &mut to.cpu).expect("good");
    assert_eq!(to.rdmsr(SPEC_CTRL), Ok(0b100));
    let mut other = lab(0);
    let refused = other.machine.restore_vcpu(&saved, &mut other.vcpu, &mut other.cpu).expect_err("refused");
    assert_eq!(refused, StateError { field: "speculation.spec_ctrl", ..refused });
    // Registers that an older version has not saved are zero, as before.
    saved.speculation.spec_ctrl = 0.into();
    other.machine.restore_vcpu(&saved, &mut other.vcpu, &mut other.cpu).expect("good");
}

#[test]
fn a_guest_that_was_shown_spec_ctrl_or_ibpb_does_not_go_to_an_image_of_old() {
    for (sizes_ebx, is_shown) in [(SIZES_EBX, true), (1 << 12, true), (1 << 24, true), (0, false)] {
        let machine = lab(sizes_ebx).machine;
        assert_eq!(machine.can_be_read_by(Reader::of(3)), !is_shown, "{sizes_ebx:#x}");
        assert!(machine.can_be_read_by(Reader::of(4)));
    }
}

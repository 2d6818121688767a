// SPDX-License-Identifier: MIT OR Apache-2.0
use std::string::ToString;
use std::vec::Vec;

use super::*;
use crate::testing::Cpu;

#[test]
fn a_cpu_that_has_everything_is_read() {
    let capabilities = Cpu::complete().read().unwrap();
    assert!(capabilities.allowed_controls().has(Control::IpiVirtualization));
    assert_eq!(capabilities.allowed(Word::Pin).must, 0x16, "by the TRUE MSR");
    assert_eq!((capabilities.basic.revision(), capabilities.basic.region_bytes()), (0x11e57ed0, 4096));
    assert!(capabilities.ept_vpid.write_back() && capabilities.ept_vpid.pages_1_gib());
    assert!(capabilities.ept_vpid.invvpid_single() && !capabilities.ept_vpid.walks_5_levels());
    assert_eq!((capabilities.misc.timer_shift(), capabilities.misc.cr3_targets()), (5, 4));
    assert!(capabilities.misc.injects_without_length());
}

#[test]
fn no_register_is_read_that_does_not_exist() {
    let mut cpu = Cpu::complete();
    cpu.set(msr::BASIC, 4096 << 32);
    cpu.set(msr::PROCBASED_CTLS, 0x7ffd_fffe << 32 | 0x0401_e172);
    let mut seen = Vec::new();
    let capabilities = Capabilities::read(|msr| {
        seen.push(msr);
        cpu.get(msr)
    });
    let capabilities = capabilities.unwrap();
    let absent = [0x48b, 0x48c, 0x48d, 0x48e, 0x48f, 0x490, 0x492];
    assert!(absent.iter().all(|msr| !seen.contains(msr)), "{seen:x?}");
    assert_eq!(capabilities.allowed(Word::Secondary), Allowed::default());
    assert_eq!(capabilities.ept_vpid, EptVpid::new());
}

#[test]
fn a_bit_that_is_required_and_refused_is_named_with_its_register() {
    for msr in [msr::PINBASED_CTLS, msr::TRUE_PROCBASED_CTLS, msr::EXIT_CTLS, msr::ENTRY_CTLS, msr::PROCBASED_CTLS2] {
        let mut cpu = Cpu::complete();
        cpu.set(msr, (cpu.get(msr) | 1 << 4) & !(1 << 36));
        assert_eq!(cpu.read(), Err(Unusable::Contradiction { msr, other: msr, bit: 4 }));
    }
    let mut cpu = Cpu::complete();
    cpu.set(msr::CR4_FIXED1, 0);
    let refused = cpu.read().unwrap_err();
    assert_eq!(refused, Unusable::Contradiction { msr: msr::CR4_FIXED0, other: msr::CR4_FIXED1, bit: 13 });
    assert_eq!(
        refused.to_string(),
        "VMX: bit 13 is required and refused (IA32_VMX_CR4_FIXED0, 0x488, and IA32_VMX_CR4_FIXED1, 0x489): \
         update firmware and microcode"
    );
}

#[test]
fn the_true_registers_can_neither_require_nor_refuse_more() {
    let expected = Err(Unusable::Contradiction { msr: msr::EXIT_CTLS, other: msr::TRUE_EXIT_CTLS, bit: 18 });
    let mut cpu = Cpu::complete();
    cpu.set(msr::TRUE_EXIT_CTLS, cpu.get(msr::TRUE_EXIT_CTLS) | 1 << 18);
    assert_eq!(cpu.read(), expected);
    let mut cpu = Cpu::complete();
    cpu.set(msr::TRUE_EXIT_CTLS, cpu.get(msr::TRUE_EXIT_CTLS) & !(1 << 50));
    assert_eq!(cpu.read(), expected);
}

#[test]
fn a_control_register_has_bits_that_must_be_and_that_may_be() {
    let fixed = Fixed { must: 0x21, may: 0x8000_0031 };
    assert!(fixed.allows(0x21, 0) && fixed.allows(0x8000_0031, 0));
    assert!(!fixed.allows(0x20, 0) && !fixed.allows(0x23, 0));
    assert!(fixed.allows(0x20, 1), "exempt");
}

#[test]
fn what_ept_lacks_is_named() {
    assert_eq!(Cpu::complete().read().unwrap().check_ept(), Ok(()));
    for (bit, feature) in [(6, "page walks of 4"), (14, "write-back"), (16, "2 MiB"), (20, "INVEPT"), (25, "INVEPT")] {
        let mut cpu = Cpu::complete();
        cpu.set(msr::EPT_VPID_CAP, cpu.get(msr::EPT_VPID_CAP) & !(1 << bit));
        let refused = cpu.read().unwrap().check_ept().unwrap_err().to_string();
        assert!(refused.contains(feature) && refused.contains("(IA32_VMX_EPT_VPID_CAP, 0x48c)"), "{refused}");
    }
}

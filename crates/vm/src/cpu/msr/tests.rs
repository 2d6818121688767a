// SPDX-License-Identifier: MIT OR Apache-2.0
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

const SUPPORTED: u64 = efer::SCE | efer::LME | efer::LMA | efer::NXE;

fn plain(msr: u32) -> PlainMsr {
    match classify(msr) {
        MsrClass::Plain(plain) => plain,
        class => panic!("{msr:#x} is {class:?}"),
    }
}

fn write(msr: u32, value: u64) -> Result<u64, GeneralProtection> {
    let mut registers = PlainMsrs::new(0x0a20_1025);
    registers.write(plain(msr), value)?;
    Ok(registers.read(plain(msr)))
}

#[test]
fn the_registers_passed_through_are_exactly_those_that_the_guest_owns() {
    let numbers =
        (0..0x2000).chain(0x4b56_4d00..0x4b56_4e00).chain(0xc000_0000..0xc000_2000).chain(0xc001_0000..0xc001_2000);
    let mut owned: Vec<u32> = numbers.filter(|&msr| classify(msr) == MsrClass::OwnedByGuest).collect();
    let mut listed = OWNED_BY_GUEST.to_vec();
    owned.sort_unstable();
    listed.sort_unstable();
    assert_eq!(owned, listed);
}

#[test]
fn each_device_answers_for_its_own() {
    for (msr, class) in [
        (0x10, MsrClass::Tsc),
        (0x11, MsrClass::WallClock),
        (0x12, MsrClass::SystemTime),
        (0x1b, MsrClass::ApicBase),
        (0x277, MsrClass::Pat),
        (0x6e0, MsrClass::TscDeadline),
        (0x802, MsrClass::X2Apic(2)),
        (0x83f, MsrClass::X2Apic(0x3f)),
        (0x4b56_4d00, MsrClass::WallClock),
        (0x4b56_4d01, MsrClass::SystemTime),
        (0x4b56_4d03, MsrClass::StealTime),
        (0x4b56_4d04, MsrClass::PvEoi),
        (0xc000_0080, MsrClass::Efer),
    ] {
        assert_eq!(classify(msr), class, "{msr:#x}");
    }
}

#[test]
fn what_cpuid_hides_is_absent() {
    // Feature control, TSC adjust, prediction commands, capabilities, VMX, XSS, SVM's save area, TSC ratio.
    let hidden = [0x3a, 0x3b, 0x49, 0x10a, 0x480, 0xda0, 0xc001_0117, 0xc000_0104];
    for msr in hidden.into_iter().chain([0x900, 0x7ff, 0x4b56_4d02, 0x4b56_4d05, u32::MAX]) {
        assert_eq!(classify(msr), MsrClass::Absent, "{msr:#x}");
    }
}

#[test]
fn counters_registers_are_one_class_whichever_vendor_has_them() {
    // DEBUGCTL; Intel's counters, selects, fixed counters, capabilities, controls, full-width counters.
    let intel = [0x1d9, 0xc1, 0xc8, 0x186, 0x18d, 0x309, 0x30b, 0x345, 0x38d, 0x390, 0x4c1, 0x4c8];
    // AMD's older selects and counters, those of the extension, the global registers.
    let amd = [0xc001_0000, 0xc001_0007, 0xc001_0200, 0xc001_020b, 0xc000_0300, 0xc000_0302];
    for msr in intel.into_iter().chain(amd) {
        assert_eq!(classify(msr), MsrClass::Counters, "{msr:#x}");
    }
    for msr in [0xc0, 0xc9, 0x185, 0x18e, 0x30c, 0x38c, 0x391, 0x4c9, 0xc001_0008, 0xc001_020c, 0xc000_0303] {
        assert_eq!(classify(msr), MsrClass::Absent, "{msr:#x}");
    }
}

#[test]
fn registers_read_as_architecture_and_linux_expect_after_reset() {
    let registers = PlainMsrs::new(0x0a20_1025);
    let expected = [
        (0x8b, 0x0a20_1025_0a20_1025),
        (0xce, 0),
        (0xfe, 0x400),
        (0x179, 0),
        (0x1a0, 0x1801),
        (0x2ff, 0x806),
        (0xc001_0010, 0),
        (0xc001_0015, 1 << 24),
        (0xc001_0114, 0x18),
    ];
    for (msr, value) in expected {
        assert_eq!(registers.read(plain(msr)), value, "{msr:#x}");
    }
}

#[test]
fn a_constant_takes_only_its_own_value() {
    assert_eq!(write(PLATFORM_INFO, 0), Ok(0));
    assert_eq!(write(PLATFORM_INFO, 1), Err(GeneralProtection));
    assert_eq!(write(MTRR_CAP, 0), Err(GeneralProtection));
}

#[test]
fn what_linux_sets_reads_back() {
    assert_eq!(write(HWCR, 1 << 24 | 1 << 6), Ok(1 << 24 | 1 << 6));
    assert_eq!(write(NB_CFG, 1 << 46), Ok(1 << 46));
    assert_eq!(write(MTRR_DEFAULT_TYPE, 0), Ok(0));
    assert_eq!(write(MCG_STATUS, 4), Ok(4));
    assert_eq!(write(MICROCODE_REVISION, 0), Ok(0x0a20_1025_0a20_1025));
}

#[test]
fn bits_that_mean_nothing_are_refused() {
    for (msr, value) in [
        (HWCR, 1 << 24 | 1),
        (HWCR, 0),
        (NB_CFG, 1),
        (MTRR_DEFAULT_TYPE, 1 << 12 | 6),
        (MTRR_DEFAULT_TYPE, 2),
        (MTRR_DEFAULT_TYPE, 7),
        (MCG_STATUS, 8),
        (MISC_ENABLE, 0),
        (MICROCODE_REVISION, 1),
    ] {
        assert_eq!(write(msr, value), Err(GeneralProtection), "{msr:#x} {value:#x}");
    }
}

#[test]
fn efer_refuses_reserved_bits_and_svme() {
    for wanted in [efer::SVME, 1 << 1, 1 << 63, efer::FFXSR] {
        assert_eq!(check_efer(0, wanted, 0, SUPPORTED), Err(GeneralProtection));
    }
    assert_eq!(check_efer(0, efer::SVME, 0, u64::MAX), Err(GeneralProtection));
    assert_eq!(check_efer(0, efer::SCE | efer::NXE, 0, SUPPORTED), Ok(efer::SCE | efer::NXE));
}

#[test]
fn long_mode_cannot_be_switched_while_paging_is_on() {
    assert_eq!(check_efer(0, efer::LME, cr0::PG, SUPPORTED), Err(GeneralProtection));
    assert_eq!(check_efer(efer::LME | efer::LMA, 0, cr0::PG, SUPPORTED), Err(GeneralProtection));
    assert_eq!(check_efer(0, efer::LME, cr0::PE, SUPPORTED), Ok(efer::LME));
}

#[test]
fn long_mode_active_is_not_the_guests_to_write() {
    let active = efer::LME | efer::LMA;
    assert_eq!(check_efer(active, efer::LME, cr0::PG, SUPPORTED), Ok(active));
    assert_eq!(check_efer(efer::LME, active, 0, SUPPORTED), Ok(efer::LME));
}

#[test]
fn pat_takes_only_memory_types() {
    assert_eq!(check_pat(PAT_RESET), Ok(()));
    assert_eq!(check_pat(0x0407_0506_0107_0406), Ok(()));
    for value in [2, 3, 8, 0x0200_0000_0000_0000, 0x8000_0000_0000_0000] {
        assert_eq!(check_pat(value), Err(GeneralProtection), "{value:#x}");
    }
}

#[test]
fn the_state_survives_and_reserved_bits_in_it_are_refused() {
    let mut registers = PlainMsrs::new(7);
    registers.write(PlainMsr::Hwcr, 1 << 24 | 1 << 6).unwrap();
    assert_eq!(PlainMsrs::from_state(&registers.state()), Ok(registers));
    let refused = PlainMsrs::from_state(&MsrState { nb_cfg: 1, ..registers.state() }).unwrap_err();
    assert_eq!(refused.field, "msr.nb_cfg");
}

proptest! {
    #[test]
    fn a_write_is_refused_or_leads_to_a_state_that_can_be_carried(
        writes in prop::collection::vec((prop_oneof![
            Just(HWCR), Just(NB_CFG), Just(MTRR_DEFAULT_TYPE), Just(MCG_STATUS), Just(MISC_ENABLE), Just(DE_CFG),
            Just(MICROCODE_REVISION), any::<u32>(), 0..0x1000_u32, 0xc001_0000..0xc001_2000_u32,
        ], prop_oneof![any::<u64>(), 0..0x2000_u64, (0..64_u32).prop_map(|bit| 1 << bit)]), 0..32)
    ) {
        let mut registers = PlainMsrs::new(1);
        for (msr, value) in writes {
            let MsrClass::Plain(plain) = classify(msr) else { continue };
            let before = registers;
            match registers.write(plain, value) {
                Ok(()) => prop_assert!(matches!(plain, PlainMsr::MicrocodeRevision) || registers.read(plain) == value),
                Err(GeneralProtection) => prop_assert_eq!(registers, before),
            }
            prop_assert_eq!(PlainMsrs::from_state(&registers.state()), Ok(registers));
        }
    }

    #[test]
    fn efer_never_holds_what_is_not_supported(current: u64, wanted: u64, cr0: u64, supported: u64) {
        if let Ok(value) = check_efer(current & supported, wanted, cr0, supported) {
            prop_assert_eq!(value & !supported & !efer::LMA, 0);
            prop_assert_eq!(value & efer::SVME, 0);
        }
    }
}

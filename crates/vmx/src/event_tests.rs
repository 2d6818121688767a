// SPDX-License-Identifier: MIT OR Apache-2.0
use proptest::prelude::*;
use vm::vcpu::Exception;

use super::*;
use crate::testing::{Cpu, Image};

fn vmcs() -> Image {
    Image::new(Cpu::complete().read().unwrap().allowed_controls())
}

#[test]
fn events_have_the_manuals_kinds_vectors_and_codes() {
    let bits = |event| Injection::new(event, false).interruption.into_bits();
    assert_eq!(bits(Event::Interrupt(0x31)), 0x8000_0031);
    assert_eq!(bits(Event::Nmi), 0x8000_0202);
    assert_eq!(bits(Event::Exception(Exception::InvalidOpcode)), 0x8000_0306);
    assert_eq!(bits(Event::Exception(Exception::GeneralProtection(8))), 0x8000_0b0d);
    assert_eq!(Injection::new(Event::Exception(Exception::GeneralProtection(8)), false).error_code, 8);
}

#[test]
fn real_mode_gets_no_error_code() {
    let injection = Injection::new(Event::Exception(Exception::GeneralProtection(8)), true);
    assert_eq!((injection.interruption.into_bits(), injection.error_code), (0x8000_030d, 0));
}

#[test]
fn what_an_exit_interrupted_is_injected_as_it_was_without_bits_that_are_reserved_there() {
    let mut vmcs = vmcs();
    assert_eq!(Injection::interrupted(&vmcs), None);
    vmcs.write_32(Field32::IdtVectoringInformation, 0x8000_1b0e);
    vmcs.write_32(Field32::IdtVectoringErrorCode, 6);
    let fault = Injection::interrupted(&vmcs).unwrap();
    assert_eq!((fault.interruption.into_bits(), fault.error_code, fault.instruction_bytes), (0x8000_0b0e, 6, 0));
    vmcs.write_32(Field32::IdtVectoringInformation, 0x8000_0480);
    vmcs.write_32(Field32::ExitInstructionLength, 2);
    let software = Injection::interrupted(&vmcs).unwrap();
    assert_eq!((software.error_code, software.instruction_bytes), (0, 2));
    software.write(&mut vmcs);
    assert_eq!(vmcs.read_32(Field32::EntryInterruptionInformation), 0x8000_0480);
    assert_eq!(vmcs.read_32(Field32::EntryInstructionLength), 2);
}

#[test]
fn an_iret_that_an_exit_interrupts_has_its_nmis_blocked_again() {
    let mut vmcs = vmcs();
    vmcs.write_32(Field32::ExitReason, reason::EPT_VIOLATION.into());
    assert!(!has_unblocked_nmi(&vmcs));
    vmcs.write_natural(FieldNatural::ExitQualification, 1 << 12);
    assert!(has_unblocked_nmi(&vmcs));
    vmcs.write_32(Field32::IdtVectoringInformation, 0x8000_0202);
    assert!(!has_unblocked_nmi(&vmcs), "the bit is undefined during a delivery");
    vmcs.write_32(Field32::IdtVectoringInformation, 0);
    vmcs.write_32(Field32::ExitReason, reason::EXCEPTION_OR_NMI.into());
    vmcs.write_32(Field32::ExitInterruptionInformation, 0x8000_1b0d);
    assert!(has_unblocked_nmi(&vmcs));
    vmcs.write_32(Field32::ExitInterruptionInformation, 0x8000_1b08);
    assert!(!has_unblocked_nmi(&vmcs), "nor is it defined for a double fault");
    vmcs.write_32(Field32::ExitReason, reason::CPUID.into());
    assert!(!has_unblocked_nmi(&vmcs));
}

#[test]
fn dr6_has_the_new_breakpoints_and_keeps_the_rest() {
    const RESET: u64 = 0xffff_0ff0;
    assert_eq!(dr6(RESET | 0xf, 1), RESET | 1, "new breakpoints replace those before");
    assert_eq!(dr6(RESET | 1 << 14, 1 << 13), RESET | 1 << 14 | 1 << 13);
    assert_eq!(dr6(RESET, 1 << 16), RESET & !(1 << 16), "RTM is active low");
    assert_eq!(dr6(RESET, 1 << 11), RESET & !(1 << 11), "BLD too");
}

proptest! {
    #[test]
    fn whatever_was_interrupted_is_written_and_read_back(info: u32, code: u32, length: u32) {
        let mut before = vmcs();
        before.write_32(Field32::IdtVectoringInformation, info);
        before.write_32(Field32::IdtVectoringErrorCode, code);
        before.write_32(Field32::ExitInstructionLength, length);
        let Some(event) = Injection::interrupted(&before) else { return Ok(()) };
        let mut after = vmcs();
        event.write(&mut after);
        prop_assert_eq!(after.read_32(Field32::EntryInterruptionInformation), info & 0x8000_0fff);
        prop_assert_eq!(after.read_32(Field32::EntryExceptionErrorCode), event.error_code);
        prop_assert_eq!(after.read_32(Field32::EntryInstructionLength), event.instruction_bytes);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::format;
use std::string::String;
use std::vec::Vec;

use vm::vcpu::SegmentName;

use super::*;
use crate::control::{Control, Controls};

/// Bits 11:10 of an encoding (section 25.11.2).
const CONTROL: u32 = 0;
const READ_ONLY: u32 = 1;
const GUEST: u32 = 2;
const HOST: u32 = 3;

/// Fields with information about an exit or a failed instruction.
const INFORMATION: [&str; 15] = [
    "VmInstructionError",
    "ExitReason",
    "ExitInterruptionInformation",
    "ExitInterruptionErrorCode",
    "IdtVectoringInformation",
    "IdtVectoringErrorCode",
    "ExitInstructionLength",
    "ExitInstructionInformation",
    "GuestPhysicalAddress",
    "ExitQualification",
    "IoRcx",
    "IoRsi",
    "IoRdi",
    "IoRip",
    "GuestLinearAddress",
];

fn area(name: &str) -> u32 {
    match name {
        name if INFORMATION.contains(&name) => READ_ONLY,
        "VmcsLinkPointer" => GUEST,
        name if name.starts_with("Guest") => GUEST,
        name if name.starts_with("Host") => HOST,
        _ => CONTROL,
    }
}

/// Checks one width's encodings, and returns them.
fn encodings<F: Field + Debug>(width: u32) -> Vec<(u32, String)> {
    let all: Vec<_> = F::ALL.iter().map(|field| (field.encoding(), format!("{field:?}"))).collect();
    assert!(all.is_sorted() && !all.is_empty());
    for (encoding, name) in &all {
        assert_eq!(encoding >> 13 & 3, width, "{name}: bits 14:13, the width");
        assert_eq!(encoding & 1, 0, "{name}: bit 0, access to the whole field");
        assert_eq!(encoding >> 10 & 3, area(name), "{name}: bits 11:10, the type");
        assert_eq!(encoding & !0x6fff, 0, "{name}: reserved bits 12 and 31:15");
    }
    all
}

#[test]
fn encodings_have_the_structure_that_their_names_and_widths_ask_for_and_no_two_are_equal() {
    let widths =
        [encodings::<Field16>(0), encodings::<Field64>(1), encodings::<Field32>(2), encodings::<FieldNatural>(3)];
    let all: Vec<_> = widths.concat();
    let distinct: BTreeSet<_> = all.iter().map(|(encoding, _)| *encoding).collect();
    assert_eq!(distinct.len(), all.len());
}

#[test]
fn encodings_are_the_manuals() {
    let known = [
        (Field16::GuestTrSelector.encoding(), 0x080e),
        (Field16::HostTrSelector.encoding(), 0x0c0c),
        (Field64::MsrBitmap.encoding(), 0x2004),
        (Field64::EptPointer.encoding(), 0x201a),
        (Field64::GuestPhysicalAddress.encoding(), 0x2400),
        (Field64::GuestPdpte3.encoding(), 0x2810),
        (Field64::HostEfer.encoding(), 0x2c02),
        (Field32::SecondaryControls.encoding(), 0x401e),
        (Field32::ExitInstructionInformation.encoding(), 0x440e),
        (Field32::GuestActivityState.encoding(), 0x4826),
        (Field32::GuestPreemptionTimerValue.encoding(), 0x482e),
        (FieldNatural::GuestLinearAddress.encoding(), 0x640a),
        (FieldNatural::GuestRflags.encoding(), 0x6820),
        (FieldNatural::HostRip.encoding(), 0x6c16),
    ];
    for (encoding, expected) in known {
        assert_eq!(encoding, expected, "{expected:#x}");
    }
}

#[test]
fn fields_of_a_segment_are_found_by_its_name() {
    let names = [
        (SegmentName::Es, "Es"),
        (SegmentName::Cs, "Cs"),
        (SegmentName::Ss, "Ss"),
        (SegmentName::Ds, "Ds"),
        (SegmentName::Fs, "Fs"),
        (SegmentName::Gs, "Gs"),
        (SegmentName::Ldtr, "Ldtr"),
        (SegmentName::Tr, "Tr"),
    ];
    for (segment, name) in names {
        let at = segment as usize;
        assert_eq!(format!("{:?}", Field16::GUEST_SELECTORS[at]), format!("Guest{name}Selector"));
        assert_eq!(format!("{:?}", Field32::GUEST_LIMITS[at]), format!("Guest{name}Limit"));
        assert_eq!(format!("{:?}", Field32::GUEST_ACCESS_RIGHTS[at]), format!("Guest{name}AccessRights"));
        assert_eq!(format!("{:?}", FieldNatural::GUEST_BASES[at]), format!("Guest{name}Base"));
    }
}

#[test]
fn a_field_exists_where_one_of_its_controls_is_allowed() {
    assert!(FieldNatural::GuestRip.exists(Controls::NONE));
    assert!(!Field64::EptPointer.exists(Controls::NONE));
    assert!(Field64::EptPointer.exists(Controls::of(&[Control::EnableEpt])));
    assert!(Field64::GuestPat.exists(Controls::of(&[Control::SavePat])), "by either of its controls");
    assert!(Field64::GuestPat.exists(Controls::of(&[Control::EntryLoadPat])));
    assert!(!Field64::GuestPat.exists(Controls::of(&[Control::ExitLoadPat])), "that one is the host's");
}

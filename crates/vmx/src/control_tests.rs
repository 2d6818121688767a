// SPDX-License-Identifier: MIT OR Apache-2.0
use std::collections::BTreeSet;

use super::*;

#[test]
fn every_control_has_a_bit_of_its_own_in_its_word_and_a_name_of_its_own() {
    let places: BTreeSet<_> = Control::ALL.iter().map(|it| (it.word() as usize, it.bit())).collect();
    assert_eq!(places.len(), Control::ALL.len());
    let names: BTreeSet<_> = Control::ALL.iter().map(|it| (it.word() as usize, it.name())).collect();
    assert_eq!(names.len(), Control::ALL.len());
    for control in Control::ALL {
        assert!(control.bit() <= u64::from(u32::MAX) || control.word() == Word::Tertiary, "{control:?}");
    }
}

#[test]
fn controls_are_where_the_manual_has_them() {
    let known = [
        (Control::ExternalInterruptExiting, Word::Pin, 0),
        (Control::ProcessPostedInterrupts, Word::Pin, 7),
        (Control::HltExiting, Word::Primary, 7),
        (Control::UseTprShadow, Word::Primary, 21),
        (Control::ActivateSecondaryControls, Word::Primary, 31),
        (Control::EnableEpt, Word::Secondary, 1),
        (Control::UnrestrictedGuest, Word::Secondary, 7),
        (Control::IpiVirtualization, Word::Tertiary, 4),
        (Control::HostAddressSpaceSize, Word::Exit, 9),
        (Control::ExitLoadEfer, Word::Exit, 21),
        (Control::Ia32eModeGuest, Word::Entry, 9),
        (Control::EntryLoadEfer, Word::Entry, 15),
    ];
    for (control, word, bit) in known {
        assert_eq!((control.word(), control.bit()), (word, 1 << bit), "{control:?}");
    }
}

#[test]
fn a_control_activates_its_word_and_counts_for_nothing_without() {
    let set = Controls::of(&[Control::EnableEpt]);
    assert!(set.has(Control::ActivateSecondaryControls) && set.has(Control::EnableEpt));
    let asleep = set.without(Control::ActivateSecondaryControls);
    assert!(!asleep.has(Control::EnableEpt));
    assert_eq!(asleep.word(Word::Secondary), Control::EnableEpt.bit(), "the word stays what it was");
}

#[test]
fn bits_without_a_name_are_kept() {
    let set = Controls::NONE.with_word(Word::Pin, 0x16).with(Control::NmiExiting);
    assert_eq!(set.word(Word::Pin), 0x1e);
    assert_eq!(set.without(Control::NmiExiting).word(Word::Pin), 0x16);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entries as I/O APICs take them.

use super::{Redirection, Signal};
use crate::Interrupt;

const LEVEL: Signal = Signal::Interrupt(Interrupt { vector: 0x42, destination: 7, is_level: true });
const NMI: Signal = Signal::Nmi { destination: 3 };

#[test]
fn a_direct_entry_names_the_cpu() {
    assert_eq!(Redirection::direct(LEVEL, true).0, 7 << 56 | 1 << 15 | 1 << 13 | 0x42);
    assert_eq!(Redirection::direct(NMI, false).0, 3 << 56 | 0x400);
    assert_eq!(Redirection::direct(NMI, false).masked().0, 3 << 56 | 0x400 | 1 << 16);
}

#[test]
fn a_remapped_entry_names_the_tables_entry() {
    assert_eq!(Redirection::remapped(5, LEVEL, true).0, 5 << 49 | 1 << 48 | 1 << 15 | 1 << 13 | 0x42);
    assert_eq!(Redirection::remapped(0x8001, NMI, false).0, 1 << 49 | 1 << 48 | 1 << 11);
}

#[test]
fn nmis_are_known_in_both_formats() {
    for (signal, is_nmi) in [(LEVEL, false), (NMI, true)] {
        assert_eq!(Redirection::direct(signal, false).masked().is_nmi(), is_nmi);
        assert_eq!(Redirection::remapped(0x42, signal, false).masked().is_nmi(), is_nmi);
    }
    assert!(!Redirection(1 << 16).is_nmi(), "as after reset");
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A spare entry in an atomic variable, and what is stored for it.

use units::PhysAddr;

use super::Spare;
use crate::redirection::{Redirection, Signal};

#[test]
fn a_spare_entry_is_one_word_and_back() {
    let nmi = Signal::Nmi { destination: 3 };
    let spare = Spare::new(PhysAddr(0x000f_ffff_1234_5670), 0xfff, true);
    assert_eq!(Spare::from_bits(spare.bits()), Some(spare));
    assert_eq!(Spare::from_bits(0), None);
    let write = spare.send(nmi, true);
    assert_eq!((write.at, write.word), (PhysAddr(0x000f_ffff_1234_5670), 3 << 32 | 0b100 << 5 | 1));
    assert_eq!(write.redirection, Redirection::remapped(0xfff, nmi, true));
}

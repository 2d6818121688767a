// SPDX-License-Identifier: MIT OR Apache-2.0
//! A function's list of extended capabilities (PCI Express Base 5.0, section 7.6), which only memory shows: without
//! ECAM its registers read as ones, and the list is empty.

use crate::{Bdf, ConfigSpace};

/// The first register behind the 256 bytes of conventional PCI.
const FIRST: u16 = 0x100;
/// A function has no registers from here on.
const END: u16 = 0x1000;
/// Capabilities that are read; functions have a dozen, and a list that loops ends here.
pub const MAX_EXTENDED: usize = 48;

/// Returns the first register of a function's extended capability with this identifier; `None` if there is none among
/// the first [`MAX_EXTENDED`], or if its `bytes` reach past the function's registers.
pub fn find(config: &mut dyn ConfigSpace, place: Bdf, id: u16, bytes: u16) -> Option<u16> {
    let mut register = FIRST;
    for _ in 0..MAX_EXTENDED {
        let header = config.read(place, register);
        if header == u32::MAX || header == 0 {
            return None;
        }
        if header as u16 == id {
            return (register + bytes <= END).then_some(register);
        }
        register = (header >> 20) as u16 & !3;
        if register < FIRST {
            return None;
        }
    }
    None
}

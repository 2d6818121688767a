// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which pages of a function's ranges are mapped in the guest's address space.

use super::description::Description;
use super::physical::{Physical, Piece};
use crate::addr::Gpa;
use crate::devices::pci::bar::{BARS, Window, Windows};

/// Where each range is mapped. Pieces that the host could not map are as if they were: the range is not tried again
/// until it moves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mapping {
    windows: Windows,
    /// The pieces of each range that the host has mapped, as bits.
    mapped: [u8; BARS],
}

impl Mapping {
    /// Unmaps each range that is not wanted where it is.
    pub(super) fn unmap_others(&mut self, wanted: &Windows, description: &Description, physical: &mut impl Physical) {
        for (bar, wanted) in (0..).zip(wanted) {
            let index = usize::from(bar);
            if self.windows[index] == *wanted {
                continue;
            }
            if let Some(window) = self.windows[index].take() {
                let mapped = core::mem::take(&mut self.mapped[index]);
                let is_mapped = |(number, _): &(usize, Piece)| mapped >> number & 1 != 0;
                let pieces = pieces(description, bar, window).enumerate().filter(is_mapped);
                pieces.for_each(|(_, piece)| physical.unmap(piece));
            }
        }
    }

    /// Maps each range that is wanted and not mapped.
    pub(super) fn map(&mut self, wanted: &Windows, description: &Description, physical: &mut impl Physical) {
        for (bar, wanted) in (0..).zip(wanted) {
            let index = usize::from(bar);
            let Some(window) = wanted.filter(|_| self.windows[index].is_none()) else { continue };
            let pieces = pieces(description, bar, window).enumerate();
            let mapped = pieces.map(|(number, piece)| u8::from(physical.map(piece)) << number);
            self.mapped[index] = mapped.fold(0, |bits, bit| bits | bit);
            self.windows[index] = Some(window);
        }
    }
}

fn pieces(description: &Description, bar: u8, window: Window) -> impl Iterator<Item = Piece> + use<> {
    let pieces = description.pieces(bar).into_iter();
    pieces.map(move |(from, to)| Piece { bar, offset: from, bytes: to - from, gpa: Gpa(window.first + from) })
}

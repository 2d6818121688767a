// SPDX-License-Identifier: MIT OR Apache-2.0
//! The map from a port to the device that answers at it.
//!
//! Most ports belong to no device, and most accesses of a booting kernel go there. One load distinguishes those: a byte
//! for each eight ports states where the claims on them begin.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::addr::AccessSize;
use crate::devices::device::Widths;
use crate::platform::layout::FIXED_PORTS_END;

/// Ports that share a cell.
const CELL_PORTS: u16 = 8;
const CELLS: usize = (FIXED_PORTS_END / CELL_PORTS) as usize;
/// No port of the cell is claimed.
const UNCLAIMED: u8 = u8::MAX;

/// A claim's part in one cell.
#[derive(Clone, Copy, Debug)]
struct PortClaim {
    first: u16,
    count: u16,
    widths: Widths,
    cell: u16,
    device: usize,
    range: u8,
}

impl PortClaim {
    /// Its place among the claims.
    fn order(&self) -> (u16, bool) {
        (self.cell, self.widths != Widths::Byte)
    }
}

/// The claims of devices on ports below [`FIXED_PORTS_END`].
#[derive(Debug)]
pub(super) struct PortMap {
    /// The index of each cell's first claim.
    cells: Box<[u8; CELLS]>,
    /// By cell; in a cell those on accesses of one byte come first.
    claims: Vec<PortClaim>,
}

impl PortMap {
    /// A map in which no device claims a port.
    pub fn new() -> Self {
        Self { cells: Box::new([UNCLAIMED; CELLS]), claims: Vec::new() }
    }

    /// Returns whether no other device answers the same accesses to one of the ports, and they can be claimed at all.
    pub fn is_free(&self, first: u16, count: u16, widths: Widths) -> bool {
        let overlaps = |claim: &PortClaim| {
            claim.widths == widths && first < claim.first + claim.count && claim.first < first.saturating_add(count)
        };
        let is_possible = count > 0 && first < FIXED_PORTS_END && count <= FIXED_PORTS_END - first;
        let cells = usize::from(count / CELL_PORTS) + 2;
        is_possible && self.claims.len() + cells < usize::from(UNCLAIMED) && !self.claims.iter().any(overlaps)
    }

    /// Claims ports that are free for a range of a device.
    pub fn add(&mut self, (first, count): (u16, u16), widths: Widths, (device, range): (usize, u8)) {
        for cell in first / CELL_PORTS..=(first + (count - 1)) / CELL_PORTS {
            let claim = PortClaim { first, count, widths, cell, device, range };
            let place = self.claims.partition_point(|other| other.order() <= claim.order());
            self.claims.insert(place, claim);
        }
        self.cells.fill(UNCLAIMED);
        for (index, claim) in (0..UNCLAIMED).zip(&self.claims) {
            let cell = &mut self.cells[usize::from(claim.cell)];
            *cell = (*cell).min(index);
        }
    }

    /// The device, its range and the place in it that an access to a port is for.
    #[inline]
    pub fn find(&self, port: u16, size: AccessSize) -> Option<(usize, u8, u16)> {
        let cell = port / CELL_PORTS;
        let first = *self.cells.get(usize::from(cell))?;
        if first == UNCLAIMED {
            return None;
        }
        self.find_in(cell, first, port, size)
    }

    fn find_in(&self, cell: u16, first: u8, port: u16, size: AccessSize) -> Option<(usize, u8, u16)> {
        let claims = self.claims.get(usize::from(first)..)?.iter().take_while(|claim| claim.cell == cell);
        let answers = |claim: &&PortClaim| {
            port.wrapping_sub(claim.first) < claim.count && (claim.widths == Widths::Any || size == AccessSize::Byte)
        };
        let claim = claims.into_iter().find(answers)?;
        Some((claim.device, claim.range, port - claim.first))
    }
}

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device scopes: functions that Intel's table names by a path of bridges (VT-d rev 4.1, section 8.3.1).

use arrayvec::ArrayVec;
use pci::{Bdf, ConfigSpace};

use super::block::Block;
use super::problem::TableFault;

/// Bytes before a path, which has two for each function on it.
const HEADER_BYTES: u32 = 6;
/// Bridges that are read for one table. Real paths have at most a few, real tables some dozen paths.
const MAX_BRIDGES: u32 = 4096;
/// Configuration registers of a bridge: header type in bits 16-22; secondary and subordinate bus in 8-15 and 16-23.
const HEADER_TYPE: u16 = 0x0c;
const BUSES: u16 = 0x18;

/// One scope of a structure, not yet resolved.
#[derive(Clone, Copy)]
pub(super) struct Named<'b, 'm> {
    block: &'b Block<'m>,
    /// Its start in the table, in bytes.
    pub(super) offset: u32,
    /// The kind of device that it names.
    pub(super) kind: u8,
    /// The number of an I/O APIC or event timer.
    pub(super) id: u8,
    bus: u8,
    path_at: u32,
    path_end: u32,
}

/// The scopes of a structure from its byte `next` on. One with an invalid length is the last.
pub(super) struct Scopes<'b, 'm> {
    block: &'b Block<'m>,
    next: u32,
}

impl<'b, 'm> Scopes<'b, 'm> {
    pub(super) const fn new(block: &'b Block<'m>, start: u32) -> Self {
        Self { block, next: start }
    }
}

impl<'b, 'm> Iterator for Scopes<'b, 'm> {
    /// A scope, or the offset of one that is cut short.
    type Item = Result<Named<'b, 'm>, u32>;

    fn next(&mut self) -> Option<Self::Item> {
        let (block, at) = (self.block, self.next);
        if at >= block.bytes {
            return None;
        }
        self.next = u32::MAX;
        let offset = block.offset + at;
        let Some([kind, bytes, _flags, _, id, bus]) = block.array(at) else { return Some(Err(offset)) };
        let bytes = u32::from(bytes);
        if bytes < HEADER_BYTES || bytes > block.bytes - at {
            return Some(Err(offset));
        }
        self.next = at + bytes;
        Some(Ok(Named { block, offset, kind, id, bus, path_at: at + HEADER_BYTES, path_end: at + bytes }))
    }
}

/// Follows paths, by bridges' registers.
pub(super) struct Resolver<'c> {
    config: &'c mut dyn ConfigSpace,
    bridges_left: u32,
}

impl<'c> Resolver<'c> {
    pub(super) fn new(config: &'c mut dyn ConfigSpace) -> Self {
        Self { config, bridges_left: MAX_BRIDGES }
    }

    /// Returns the functions of a scope, as first and last requester identifiers: the function at the end of its path,
    /// and with `is_hierarchy` all functions behind that.
    pub(super) fn functions(
        &mut self,
        segment: u16,
        named: &Named<'_, '_>,
        is_hierarchy: bool,
    ) -> Result<ArrayVec<(u16, u16), 2>, TableFault> {
        let function = self.function(segment, named)?;
        let mut functions = ArrayVec::new();
        functions.push((function.requester(), function.requester()));
        if is_hierarchy {
            let (first, last) = self.buses(function)?;
            functions.push((u16::from_be_bytes([first, 0]), u16::from_be_bytes([last, u8::MAX])));
        }
        Ok(functions)
    }

    fn function(&mut self, segment: u16, named: &Named<'_, '_>) -> Result<Bdf, TableFault> {
        let mut bus = named.bus;
        let mut at = named.path_at;
        loop {
            let numbers = if at + 2 <= named.path_end { named.block.array(at) } else { None };
            let [device, function] = numbers.ok_or(TableFault::BadPath)?;
            let place = Bdf::new(segment, bus, device, function).ok_or(TableFault::BadPath)?;
            at += 2;
            if at == named.path_end {
                return Ok(place);
            }
            (bus, _) = self.buses(place)?;
        }
    }

    /// Returns the first and last bus behind a bridge. They come after its own: that is how buses are numbered, and it
    /// keeps a path from leading back.
    fn buses(&mut self, bridge: Bdf) -> Result<(u8, u8), TableFault> {
        self.bridges_left = self.bridges_left.checked_sub(1).ok_or(TableFault::TooManyBridges)?;
        let header_type = self.config.read(bridge, HEADER_TYPE) >> 16 & 0x7f;
        let [_, secondary, subordinate, _] = self.config.read(bridge, BUSES).to_le_bytes();
        // PCI-to-PCI and CardBus bridges have these registers in the same place.
        let is_bridge = matches!(header_type, 1 | 2) && secondary > bridge.bus && subordinate >= secondary;
        is_bridge.then_some((secondary, subordinate)).ok_or(TableFault::NotABridge { requester: bridge.requester() })
    }
}

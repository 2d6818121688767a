// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device entries of an IVHD: which functions are behind its unit (AMD 48882 rev 3.10, section 5.2.2.4).

use super::block::Block;
use super::contents::Description;
use super::problem::TableFault;
use super::unit::{Interrupter, InterrupterKind, Scope, Settings};

const PAD_4: u8 = 0;
const ALL: u8 = 1;
const SELECT: u8 = 2;
const RANGE_START: u8 = 3;
const RANGE_END: u8 = 4;
const PAD_8: u8 = 0x40;
const ALIAS_SELECT: u8 = 0x42;
const ALIAS_RANGE_START: u8 = 0x43;
const EXTENDED_SELECT: u8 = 0x46;
const EXTENDED_RANGE_START: u8 = 0x47;
const SPECIAL: u8 = 0x48;
/// A device that only ACPI's namespace has, by its names. The requester identifier is what counts here.
const NAMED: u8 = 0xf0;
/// Offset of the length of a named device's last name, behind the fixed fields.
const NAME_LENGTH_AT: u32 = 21;
const NAMED_BYTES: u32 = 22;
/// In the extended setting: ATS must not be used.
const FORBIDS_ATS: u32 = 1 << 31;

/// Takes over the entries of `block` from its byte `start` on, for the unit at `unit`. An entry that is cut short ends
/// the walk.
pub(super) fn read(block: &Block<'_>, start: u32, unit: u8, description: &mut Description) {
    let mut walk = Walk { block, unit, open: None, description };
    let mut at = start;
    while at < block.bytes {
        let Some(bytes) = entry_bytes(block, at).filter(|bytes| *bytes <= block.bytes - at) else {
            walk.report(at, TableFault::Truncated);
            break;
        };
        if let Err(fault) = walk.take(at) {
            walk.report(at, fault);
        }
        at += bytes;
    }
    walk.close();
}

/// Returns the length of the entry at `at`: it follows from its type, but for the types from 240 on.
fn entry_bytes(block: &Block<'_>, at: u32) -> Option<u32> {
    Some(match block.u8(at)? {
        0..=63 => 4,
        64..=127 => 8,
        128..=191 => 16,
        192..=239 => 32,
        NAMED..=255 => NAMED_BYTES + u32::from(block.u8(at.checked_add(NAME_LENGTH_AT)?)?),
    })
}

/// A walk over a unit's entries.
struct Walk<'w, 'm> {
    block: &'w Block<'m>,
    unit: u8,
    /// A range that waits for its end, and where it began.
    open: Option<(u32, Scope)>,
    description: &'w mut Description,
}

impl Walk<'_, '_> {
    fn take(&mut self, at: u32) -> Result<(), TableFault> {
        let [kind, low, high, settings] = self.block.array(at).ok_or(TableFault::Truncated)?;
        let (function, settings) = (u16::from_le_bytes([low, high]), Settings(settings));
        let one = Scope { unit: self.unit, first: function, last: function, settings, ..Scope::default() };
        let rest = || self.block.array(at + 4).ok_or(TableFault::Truncated);
        match kind {
            PAD_4 | PAD_8 => {}
            ALL => self.description.add_rest(self.unit, settings)?,
            SELECT | NAMED => self.add(at, one),
            RANGE_START => self.begin(at, one),
            RANGE_END => return self.end(function),
            ALIAS_SELECT => self.add(at, with_alias(one, rest()?)),
            ALIAS_RANGE_START => self.begin(at, with_alias(one, rest()?)),
            EXTENDED_SELECT => self.add(at, with_extension(one, rest()?)),
            EXTENDED_RANGE_START => self.begin(at, with_extension(one, rest()?)),
            SPECIAL => return self.take_interrupter(at, settings, rest()?),
            kind => return Err(TableFault::UnknownKind { kind: u16::from(kind) }),
        }
        Ok(())
    }

    fn add(&mut self, at: u32, scope: Scope) {
        self.description.add_scope(self.block.offset + at, scope);
    }

    /// Begins a range. One that is open already has no end.
    fn begin(&mut self, at: u32, scope: Scope) {
        self.close();
        self.open = Some((at, scope));
    }

    /// Ends the open range with this function.
    fn end(&mut self, function: u16) -> Result<(), TableFault> {
        let bad = TableFault::BadFunctions { requester: function };
        let (at, scope) = self.open.take().ok_or(bad)?;
        if scope.first > function {
            return Err(bad);
        }
        self.add(at, Scope { last: function, ..scope });
        Ok(())
    }

    /// Reports a range that has no end.
    fn close(&mut self) {
        if let Some((at, Scope { first: requester, .. })) = self.open.take() {
            self.report(at, TableFault::BadFunctions { requester });
        }
    }

    /// Reads an I/O APIC or event timer: its number, the requester identifier of its interrupts, its variety.
    fn take_interrupter(&mut self, at: u32, settings: Settings, rest: [u8; 4]) -> Result<(), TableFault> {
        let [id, low, high, variety] = rest;
        let (unit, requester) = (self.unit, u16::from_le_bytes([low, high]));
        let kind = match variety {
            1 => InterrupterKind::IoApic,
            2 => InterrupterKind::Hpet,
            variety => return Err(TableFault::UnknownKind { kind: u16::from(variety) }),
        };
        self.description.add_interrupter(Interrupter { kind, id, unit, requester })?;
        self.add(at, Scope { unit, first: requester, last: requester, settings, ..Scope::default() });
        Ok(())
    }

    fn report(&mut self, at: u32, fault: TableFault) {
        self.description.report(self.block.offset + at, fault);
    }
}

/// Returns the scope with the other requester identifier that the unit uses for the functions' transfers.
fn with_alias(scope: Scope, [_, low, high, _]: [u8; 4]) -> Scope {
    Scope { alias: Some(u16::from_le_bytes([low, high])), ..scope }
}

fn with_extension(scope: Scope, extension: [u8; 4]) -> Scope {
    Scope { forbids_ats: u32::from_le_bytes(extension) & FORBIDS_ATS != 0, ..scope }
}

#[cfg(test)]
#[path = "device_tests.rs"]
mod tests;

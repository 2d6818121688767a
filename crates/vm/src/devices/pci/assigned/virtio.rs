// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a virtio function's registers are: capabilities that a guest's driver needs to find them (Virtual I/O Device
//! 1.3, section 4.1.4).

use ::pci::capability::Capability;
use arrayvec::ArrayVec;

use super::physical::Physical;
use super::prober::Prober;
use super::problem::Problem;
use crate::devices::pci::bar::BARS;

/// The vendor of all virtio functions, and their device identifiers (section 4.1.2).
const VENDOR: u16 = 0x1af4;
const DEVICES: core::ops::RangeInclusive<u16> = 0x1000..=0x107f;

/// Structures that are shown: common, notifications, interrupt status, device. Others are hidden: access to registers
/// by way of configuration space, and shared memory.
const STRUCTURES: usize = 4;
/// The structure with the multiplier of queues' offsets (section 4.1.4.4).
const NOTIFICATIONS: usize = 1;
/// Bytes of a capability, and of that of the notifications.
const BYTES: u16 = 16;
const NOTIFICATION_BYTES: u16 = 20;

/// Where one of the structures is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// The range with it.
    pub bar: u8,
    /// Offset in the range in bytes.
    pub offset: u32,
    /// Bytes of it; at least one.
    pub bytes: u32,
}

/// The structures of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Structures {
    /// By type: common, notifications, interrupt status, device.
    pub places: [Option<Registers>; STRUCTURES],
    /// Bytes from one queue's notification to the next one's.
    pub multiplier: u32,
}

/// Returns whether a function with these identifiers is a virtio device.
pub(super) fn is_virtio(vendor: u16, device: u16) -> bool {
    vendor == VENDOR && DEVICES.contains(&device)
}

/// Bytes of the vendor's capability of a virtio function, by its bytes 2 and 3: length and type. `None` if it describes
/// none of the structures that are shown.
pub(super) fn bytes(flags: u16) -> Option<u16> {
    match structure(flags)? {
        NOTIFICATIONS => Some(NOTIFICATION_BYTES),
        _ => Some(BYTES),
    }
}

fn structure(flags: u16) -> Option<usize> {
    usize::from(flags >> 8).checked_sub(1).filter(|structure| *structure < STRUCTURES)
}

/// Notes the structure that a capability describes. The first of each type counts, and one in a reserved range is
/// ignored (section 4.1.4.1).
pub(super) fn read<P: Physical>(
    prober: &mut Prober<'_, P>,
    capability: &Capability,
    into: &mut Structures,
) -> Result<(), Problem> {
    let Some(structure) = structure(capability.flags).filter(|structure| into.places[*structure].is_none()) else {
        return Ok(());
    };
    let register = u16::from(capability.register);
    let bar = prober.read(register + 4)? as u8;
    if usize::from(bar) >= BARS {
        return Ok(());
    }
    if structure == NOTIFICATIONS {
        into.multiplier = prober.read(register + 16)?;
    }
    let (offset, bytes) = (prober.read(register + 8)?, prober.read(register + 12)?);
    into.places[structure] = Some(Registers { bar, offset, bytes });
    Ok(())
}

/// A capability behind identifier and pointer.
type Body = ArrayVec<u8, { NOTIFICATION_BYTES as usize - 2 }>;

impl Structures {
    /// Returns whether there is nothing that belongs to a structure that is not there.
    pub(super) fn is_possible(&self) -> bool {
        self.places[NOTIFICATIONS].is_some() || self.multiplier == 0
    }

    /// The capabilities that show them.
    pub(super) fn bodies(&self) -> impl Iterator<Item = Body> + '_ {
        let there = self.places.iter().enumerate();
        there.filter_map(|(structure, place)| Some(self.body(structure, (*place)?)))
    }

    fn body(&self, structure: usize, place: Registers) -> Body {
        let bytes = if structure == NOTIFICATIONS { NOTIFICATION_BYTES } else { BYTES };
        let head = [bytes as u8, structure as u8 + 1, place.bar, 0, 0, 0];
        let registers = [place.offset, place.bytes, self.multiplier];
        let body = head.into_iter().chain(registers.into_iter().flat_map(u32::to_le_bytes));
        body.take(usize::from(bytes) - 2).collect()
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A physical function in the hand-over's words. All of it is untrusted input when it is read.

use handover::state::{AssignedFunction, assigned_flag as flag};
use zerocopy::FromBytes as _;

use ::pci::Bdf;
use ::pci::sriov::guest;

use super::description::{Description, Identity, Range};
use super::physical::{HostIdentity, Interrupts, Phase, Route};
use super::space;
use super::virtio::{Registers, Structures};
use crate::devices::StateError;
use crate::devices::pci::bar::{BARS, Bar};
#[cfg(doc)]
use crate::devices::pci::endpoint::Endpoint;
use crate::devices::pci::msix::MsixPlace;
use crate::platform::layout::PCI_PINS;

const LINE: u8 = 1;
const MSI_X: u8 = 2;
/// One MSI vector; two are one more.
const MSI: u8 = 16;
const MOST_MSI: u8 = 5;

/// How one of its ranges is written.
const NONE: u8 = 0;
const PORTS: u8 = 1;
const MEMORY_32: u8 = 2;
const MEMORY_64: u8 = 3;
const PREFETCHABLE: u8 = 4;

fn refused(reason: &'static str) -> StateError {
    StateError { field: "pci.functions.assigned", reason }
}

impl Description {
    /// The function that a saved state begins with, so that the next image can build it before it restores it.
    ///
    /// # Errors
    /// [`StateError`] if there is no such function.
    pub fn from_saved(from: &[u8]) -> Result<Self, StateError> {
        let (from, _) = AssignedFunction::read_from_prefix(from).map_err(|_| refused("its state is cut off"))?;
        let flags = from.flags.get();
        let description = Self {
            identity: Identity {
                vendor: from.vendor.get(),
                device: from.device.get(),
                class: from.class.get(),
                subsystem_vendor: from.subsystem_vendor.get(),
                subsystem: from.subsystem.get(),
            },
            ranges: ranges(&from)?,
            msi: from.msi.checked_sub(1),
            msix: (from.msix_vectors.get() != 0).then(|| MsixPlace {
                vectors: from.msix_vectors.get(),
                bar: from.msix_bar,
                table: from.msix_table.get(),
                pending_bar: from.msix_pending_bar,
                pending: from.msix_pending.get(),
            }),
            has_power: flags & flag::POWER != 0,
            has_express: flags & flag::EXPRESS != 0,
            has_reset: flags & flag::RESETS != 0,
            virtual_functions: from.virtual_functions,
            virtio: structures(&from),
            line: from.line.checked_sub(1),
        };
        let has_pin = description.line.is_none_or(|line| PCI_PINS.contains(&line));
        let is_possible = flags & !flag::ALL == 0
            && has_pin
            && description.virtual_functions <= guest::MOST
            && (description.virtual_functions == 0 || description.has_express)
            && description.check_msix().is_ok()
            && description.has_registers_inside();
        if !is_possible || space::build(&description).is_none() {
            return Err(refused("there can be no such function"));
        }
        Ok(description)
    }

    /// Notes the function; the rest is zero.
    pub(super) fn save(&self, host: HostIdentity) -> AssignedFunction {
        let Identity { vendor, device, class, subsystem_vendor, subsystem } = self.identity;
        let set = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        let flags =
            set(self.has_power, flag::POWER) | set(self.has_express, flag::EXPRESS) | set(self.has_reset, flag::RESETS);
        let msix = self.msix.unwrap_or(MsixPlace { vectors: 0, bar: 0, table: 0, pending_bar: 0, pending: 0 });
        AssignedFunction {
            vendor: vendor.into(),
            device: device.into(),
            subsystem_vendor: subsystem_vendor.into(),
            subsystem: subsystem.into(),
            class: class.into(),
            flags: flags.into(),
            bar_addresses: self.ranges.map(|range| range.map_or(0, |range| range.address).into()),
            bar_bytes: self.ranges.map(|range| range.map_or(0, |range| range.bar.bytes()).into()),
            bar_kinds: self.ranges.map(|range| range.map_or(NONE, |range| kind(range.bar))),
            msi: self.msi.map_or(0, |vectors| vectors + 1),
            line: self.line.map_or(0, |line| line + 1),
            msix_vectors: msix.vectors.into(),
            msix_bar: msix.bar,
            msix_pending_bar: msix.pending_bar,
            msix_table: msix.table.into(),
            msix_pending: msix.pending.into(),
            passed: 0.into(),
            phase: 0,
            interrupts: 0,
            segment: host.place.segment.into(),
            requester: host.place.requester().into(),
            msi_register: host.msi,
            msix_register: host.msix,
            device_number: 0,
            virtual_functions: self.virtual_functions,
            virtio_bars: self.virtio.places.map(|place| place.map_or(0, |place| place.bar)),
            virtio_offsets: self.virtio.places.map(|place| place.map_or(0, |place| place.offset).into()),
            virtio_bytes: self.virtio.places.map(|place| place.map_or(0, |place| place.bytes).into()),
            virtio_multiplier: self.virtio.multiplier.into(),
        }
    }
}

impl HostIdentity {
    /// The function that a saved state is of; `None` if it is cut off.
    pub fn from_saved(from: &[u8]) -> Option<Self> {
        let (from, _) = AssignedFunction::read_from_prefix(from).ok()?;
        let place = Bdf::of_requester(from.segment.get(), from.requester.get());
        Some(Self { place, msi: from.msi_register, msix: from.msix_register })
    }

    /// The device number of its slot on the guest's bus, in a [packed](Endpoint::packed) state; 0 where an image of old
    /// has packed it.
    pub fn device_number(from: &[u8]) -> Option<u8> {
        Some(AssignedFunction::read_from_prefix(from).ok()?.0.device_number)
    }
}

/// The word of a route.
pub(super) const fn route_word(route: Route) -> u64 {
    (route.gsi as u64) << 40 | (route.destination as u64) << 8 | route.vector as u64
}

/// The route of a word.
pub(super) const fn route(word: u64) -> Route {
    Route { gsi: (word >> 40) as u32, destination: (word >> 8) as u32, vector: word as u8 }
}

const fn kind(bar: Bar) -> u8 {
    match bar {
        Bar::Io { .. } => PORTS,
        Bar::Memory32 { .. } => MEMORY_32,
        Bar::Memory64 { is_prefetchable: false, .. } => MEMORY_64,
        Bar::Memory64 { is_prefetchable: true, .. } => PREFETCHABLE,
    }
}

fn ranges(from: &AssignedFunction) -> Result<[Option<Range>; BARS], StateError> {
    let mut ranges = [None; BARS];
    for (index, range) in ranges.iter_mut().enumerate() {
        let (address, bytes) = (from.bar_addresses[index].get(), from.bar_bytes[index].get());
        let too_large = |_| refused("a range is too large");
        let bar = match from.bar_kinds[index] {
            NONE if address == 0 && bytes == 0 => continue,
            PORTS => Bar::Io { ports: bytes.try_into().map_err(too_large)? },
            MEMORY_32 => Bar::Memory32 { bytes: bytes.try_into().map_err(too_large)? },
            kind @ (MEMORY_64 | PREFETCHABLE) => Bar::Memory64 { bytes, is_prefetchable: kind == PREFETCHABLE },
            _ => return Err(refused("a kind of range that does not exist")),
        };
        let is_placed = bar.is_possible() && address != 0 && address.is_multiple_of(bytes);
        if !is_placed || address.checked_add(bytes - 1).is_none() {
            return Err(refused("a range has an impossible size or address"));
        }
        *range = Some(Range { bar, address });
    }
    Ok(ranges)
}

fn structures(from: &AssignedFunction) -> Structures {
    let place = |structure: usize| Registers {
        bar: from.virtio_bars[structure],
        offset: from.virtio_offsets[structure].get(),
        bytes: from.virtio_bytes[structure].get(),
    };
    let places = core::array::from_fn(|structure| Some(place(structure)).filter(|place| place.bytes != 0));
    Structures { places, multiplier: from.virtio_multiplier.get() }
}

/// The number of a phase.
pub(super) const fn phase_number(phase: Phase) -> u8 {
    match phase {
        Phase::Ready => 0,
        Phase::Resetting => 1,
        Phase::Gone => 2,
    }
}

/// The phase with a number.
pub(super) fn phase(number: u8) -> Result<Phase, StateError> {
    [Phase::Ready, Phase::Resetting, Phase::Gone].get(usize::from(number)).copied().ok_or(refused("an unknown phase"))
}

/// The number of a way to interrupt.
pub(super) const fn interrupts_number(interrupts: Interrupts) -> u8 {
    match interrupts {
        Interrupts::Off => 0,
        Interrupts::Line => LINE,
        Interrupts::MsiX => MSI_X,
        Interrupts::Msi { vectors } => MSI + vectors.trailing_zeros() as u8,
    }
}

/// The way to interrupt with a number.
pub(super) fn interrupts(number: u8) -> Result<Interrupts, StateError> {
    match number {
        0 => Ok(Interrupts::Off),
        LINE => Ok(Interrupts::Line),
        MSI_X => Ok(Interrupts::MsiX),
        MSI.. if number - MSI <= MOST_MSI => Ok(Interrupts::Msi { vectors: 1 << (number - MSI) }),
        _ => Err(refused("an unknown way to interrupt")),
    }
}

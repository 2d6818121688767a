// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bus: functions in their slots, and the one that decodes an address.

use alloc::sync::Arc;
use alloc::vec::Vec;

use handover::Full;
use handover::state::{self, DeviceKind};
use spin::Mutex;

use super::access::ConfigAccess;
use super::aperture::Apertures;
use super::bar::{BARS, Space, Window, Windows};
use super::endpoint::Configured;
use super::slot::Slot;
use crate::addr::AccessSize;
use crate::devices::device::{At, Claim, Context, Device, Tag, Widths};
use crate::devices::outputs::Outputs;
use crate::devices::{StateError, piece};
use crate::platform::layout::{self, port};

const CLAIMS: &[Claim] = &[
    Claim::Ports { first: port::PCI_ADDRESS, count: PORTS as u16, widths: Widths::Any },
    Claim::Memory { first: layout::ECAM, bytes: layout::ECAM_BYTES },
];
/// The range of [`CLAIMS`] that is the ports.
const BY_PORT: u8 = 0;
/// The address register's enable bit; without it no device answers the data ports.
const ADDRESS_ENABLE: u32 = 1 << 31;
/// Bits of the address register that can be written: enable, bus, slot and register.
const ADDRESS_MASK: u32 = ADDRESS_ENABLE | 0x00ff_fffc;
/// Offset of the data ports from [`port::PCI_ADDRESS`].
const DATA_OFFSET: u8 = 4;
/// The PCI ports end here.
const PORTS: u8 = 8;
/// Devices of a bus.
const MOST_DEVICES: usize = 32;
/// Registers that decide where a function decodes: from the command register to the last base address register.
const DECODING: core::ops::Range<usize> = 0x04..0x28;

/// The way to a function on the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It is among the devices of its machine, at this place, for good.
    Fixed(usize),
    /// It has come while the machine ran, or may go: the bus alone has it, in this slot.
    Plugged(Slot),
}

/// A function, and the way to it.
struct Attached {
    slot: Slot,
    reach: Reach,
    function: Arc<Mutex<dyn Configured>>,
}

/// The range of a base address register, and the function that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Placed {
    window: Window,
    slot: Slot,
    reach: Reach,
    bar: u8,
}

/// The bus with its functions.
pub struct PciBus {
    address: u32,
    functions: Vec<Attached>,
    /// Ranges that functions decode, by slot: of two that overlap the first one answers.
    placed: Vec<Placed>,
    apertures: Apertures,
}

impl Default for PciBus {
    fn default() -> Self {
        Self::new()
    }
}

impl PciBus {
    /// A bus without functions. It has memory for one in each device: none is taken when the guest moves ranges, nor
    /// when a function comes.
    pub fn new() -> Self {
        let (functions, placed) = (Vec::with_capacity(MOST_DEVICES), Vec::with_capacity(MOST_DEVICES * BARS));
        Self { address: 0, functions, placed, apertures: Apertures::NONE }
    }

    /// Lets ranges be mapped in these apertures; until then all accesses to ranges are exits.
    pub fn set_apertures(&mut self, apertures: Apertures) {
        self.apertures = apertures;
        self.place();
    }

    /// Puts a function into a slot. `device` is its place among the machine's devices. False if the slot is taken.
    pub fn insert(&mut self, slot: Slot, device: usize, function: Arc<Mutex<dyn Configured>>) -> bool {
        self.add(Attached { slot, reach: Reach::Fixed(device), function })
    }

    /// Puts a function into a slot that it may leave again. False if the slot is taken.
    pub fn plug(&mut self, slot: Slot, function: Arc<Mutex<dyn Configured>>) -> bool {
        self.add(Attached { slot, reach: Reach::Plugged(slot), function })
    }

    /// Takes a function out of its slot: nothing answers its ranges any more. The caller drops it once it is not
    /// borrowed. `None` if there is none that may leave.
    pub fn unplug(&mut self, slot: Slot) -> Option<Arc<Mutex<dyn Configured>>> {
        let at = self.position(slot).ok().filter(|at| self.functions[*at].reach == Reach::Plugged(slot))?;
        let attached = self.functions.remove(at);
        attached.function.lock().unmap_others(&[None; BARS]);
        self.place();
        Some(attached.function)
    }

    /// The way to the function in a slot.
    pub fn reach(&self, slot: Slot) -> Option<Reach> {
        Some(self.functions[self.position(slot).ok()?].reach)
    }

    /// A function that may leave.
    pub fn plugged(&self, slot: Slot) -> Option<Arc<Mutex<dyn Configured>>> {
        let attached = &self.functions[self.position(slot).ok()?];
        (attached.reach == Reach::Plugged(slot)).then(|| attached.function.clone())
    }

    /// The slots of functions that may leave, by rising slot.
    pub fn plugged_slots(&self) -> impl Iterator<Item = Slot> {
        self.functions.iter().filter_map(|attached| match attached.reach {
            Reach::Plugged(slot) => Some(slot),
            Reach::Fixed(_) => None,
        })
    }

    /// Returns whether no function is in a slot.
    pub fn is_free(&self, slot: Slot) -> bool {
        self.position(slot).is_err()
    }

    fn add(&mut self, attached: Attached) -> bool {
        let found = self.position(attached.slot);
        if let Err(at) = found {
            self.functions.insert(at, attached);
            self.placed.reserve(self.functions.len() * BARS);
            self.place();
        }
        found.is_err()
    }

    fn position(&self, slot: Slot) -> Result<usize, usize> {
        self.functions.binary_search_by_key(&slot.0, |attached| attached.slot.0)
    }

    /// The way to the function that decodes an address, and where in which of its ranges the address is.
    pub fn find(&self, space: Space, address: u64, size: AccessSize) -> Option<(Reach, At)> {
        let decodes = |Window { space: own, first, last }: Window| own == space && (first..=last).contains(&address);
        let placed = self.placed.iter().find(|placed| decodes(placed.window))?;
        Some((placed.reach, At { range: placed.bar, offset: address - placed.window.first, size }))
    }

    /// Finds out again where functions decode, and maps their ranges there as far as they can be mapped.
    pub fn place(&mut self) {
        self.placed.clear();
        for &Attached { slot, reach, ref function } in &self.functions {
            let function = function.lock();
            let windows = (0..BARS).filter_map(|bar| Some((bar, function.window(bar)?)));
            self.placed.extend(windows.map(|(bar, window)| Placed { window, slot, reach, bar: bar as u8 }));
        }
        // Functions that move are unmapped first: one function may move to where another was.
        self.functions.iter().for_each(|attached| self.with_mappable(attached, |function, w| function.unmap_others(w)));
        self.functions.iter().for_each(|attached| self.with_mappable(attached, |function, w| function.map(w)));
    }

    fn with_mappable(&self, attached: &Attached, act: impl FnOnce(&mut dyn Configured, &Windows)) {
        let mut function = attached.function.lock();
        if function.maps_ranges() {
            act(&mut *function, &self.mappable(attached.slot));
        }
    }

    /// A function's windows that lie in an aperture, and that no window before them overlaps.
    fn mappable(&self, slot: Slot) -> Windows {
        let mut windows = [None; BARS];
        for (index, placed) in self.placed.iter().enumerate().filter(|(_, placed)| placed.slot == slot) {
            let is_first = || self.placed[..index].iter().all(|before| !before.window.overlaps(placed.window));
            if self.apertures.hold(placed.window) && is_first() {
                windows[usize::from(placed.bar)] = Some(placed.window);
            }
        }
        windows
    }

    /// Reads at `offset` from the address port. Narrow reads of the address port are of ordinary ports that no device
    /// answers.
    fn read_port(&self, offset: u8, size: AccessSize, context: &mut Context<'_>) -> u64 {
        match (offset, size) {
            (0, AccessSize::Dword) => self.address.into(),
            (DATA_OFFSET..PORTS, _) => self.read_config(self.behind_port(offset, size), size, context),
            _ => size.mask(),
        }
    }

    /// Writes at `offset` from the address port. Narrow writes of the address port are ignored: one of its bytes is the
    /// reset register.
    fn write_port(&mut self, offset: u8, size: AccessSize, value: u64, context: &mut Context<'_>) {
        match (offset, size) {
            (0, AccessSize::Dword) => self.address = value as u32 & ADDRESS_MASK,
            (DATA_OFFSET..PORTS, _) => self.write_config(self.behind_port(offset, size), value, context),
            _ => {}
        }
    }

    /// Returns the registers that the data port at `offset` reaches.
    fn behind_port(&self, offset: u8, size: AccessSize) -> Option<ConfigAccess> {
        let [register, slot, bus, _] = self.address.to_le_bytes();
        let is_reached = self.address & ADDRESS_ENABLE != 0 && bus == 0;
        is_reached.then_some(ConfigAccess::by_port(slot, register, offset - DATA_OFFSET, size))
    }

    /// The function in a slot, or else the physical function that may have a virtual one there.
    fn function(&self, slot: Slot) -> Option<&Mutex<dyn Configured>> {
        let at = self.position(slot).or_else(|_| self.position(slot.first())).ok()?;
        Some(&self.functions[at].function)
    }

    fn read_config(&self, access: Option<ConfigAccess>, size: AccessSize, context: &mut Context<'_>) -> u64 {
        let function = access.and_then(|access| Some((access, self.function(access.slot)?)));
        function.map_or(size.mask(), |(access, function)| function.lock().read_config(access, context))
    }

    fn write_config(&mut self, access: Option<ConfigAccess>, value: u64, context: &mut Context<'_>) {
        let Some(access) = access else { return };
        let Some(function) = self.function(access.slot) else { return };
        let mut function = function.lock();
        function.write_config(access, value, context);
        let has_moved = function.take_moved();
        drop(function);
        if has_moved || access.touches(DECODING.start, DECODING.end) {
            self.place();
        }
    }
}

impl Device for PciBus {
    fn tag(&self) -> Tag {
        Tag::only(DeviceKind::PciHost)
    }

    fn claims(&self) -> &'static [Claim] {
        CLAIMS
    }

    fn read(&mut self, at: At, context: &mut Context<'_>) -> u64 {
        match at.range {
            BY_PORT => self.read_port(at.offset as u8, at.size, context),
            _ => self.read_config(ConfigAccess::enhanced(at.offset, at.size), at.size, context),
        }
    }

    fn write(&mut self, at: At, value: u64, context: &mut Context<'_>) {
        match at.range {
            BY_PORT => self.write_port(at.offset as u8, at.size, value, context),
            _ => self.write_config(ConfigAccess::enhanced(at.offset, at.size), value, context),
        }
    }

    fn raise_pending(&mut self, outputs: &mut Outputs) {
        self.functions.iter().for_each(|attached| attached.function.lock().raise_pending(outputs));
    }

    /// The functions are devices of their own, and are reset by themselves.
    fn reset(&mut self) {
        self.address = 0;
    }

    fn state_bytes(&self) -> usize {
        size_of::<state::PciAddress>()
    }

    fn save(&self, into: &mut [u8]) -> Result<usize, Full> {
        piece::save(&state::PciAddress { address: self.address.into(), zero: 0.into() }, into)
    }

    fn restore(&mut self, _: u32, from: &[u8]) -> Result<(), StateError> {
        let from: state::PciAddress = piece::read("pci.address", from)?;
        let address = from.address.get();
        if address & !ADDRESS_MASK != 0 {
            return Err(StateError { field: "pci.address", reason: "a bit is set that always reads as zero" });
        }
        self.address = address;
        Ok(())
    }
}

#[cfg(test)]
mod tests;

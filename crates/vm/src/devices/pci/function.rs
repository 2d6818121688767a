// SPDX-License-Identifier: MIT OR Apache-2.0
//! A function's configuration space: header, base addresses, capabilities (PCI Local Bus 3.0, section 6.1).

mod enabled;

use handover::Full;
use handover::state::{self, PciFunction};
use zerocopy::FromBytes as _;

use super::bar::{BARS, Bar, FIRST_BAR, Space, Window};
use super::msi::{self, Msi};
use super::msix::{self, Msix, MsixPlace};
use super::registers::{CONFIG_BYTES, Registers};
use super::slot::Slot;
use crate::devices::device::At;
use crate::devices::outputs::Outputs;
use crate::devices::{StateError, piece};

// The hand-over has room for the registers.
const _: () = assert!(CONFIG_BYTES == state::CONFIG_BYTES);

/// Offsets in the header that every function has.
mod header {
    pub const VENDOR: usize = 0x00;
    pub const DEVICE: usize = 0x02;
    pub const COMMAND: usize = 0x04;
    pub const STATUS: usize = 0x06;
    pub const CLASS: usize = 0x09;
    pub const CAPABILITIES: usize = 0x34;
}

/// Command register: answers accesses to ports.
const COMMAND_IO: u8 = 1 << 0;
/// Command register: answers accesses to memory.
const COMMAND_MEMORY: u8 = 1 << 1;
/// Command register: may write memory.
const COMMAND_MASTER: u8 = 1 << 2;
/// Status register: there are capabilities.
const STATUS_CAPABILITIES: u8 = 1 << 4;
/// Capabilities begin behind the header.
const FIRST_CAPABILITY: usize = 0x40;
/// QEMU's generic PCI Express host bridge, which drivers know to need nothing.
const HOST_BRIDGE_VENDOR: u16 = 0x1b36;
const HOST_BRIDGE_DEVICE: u16 = 0x0008;
/// Base class bridge, subclass host, no programming interface.
const CLASS_HOST_BRIDGE: u32 = 0x06_0000;

/// A function cannot have such a base address register or capability, or has no room for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfit;

/// A function as its guest configures it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    registers: Registers,
    bars: [Option<Bar>; BARS],
    /// Offset of the last capability in bytes; 0 if there is none.
    last_capability: usize,
    /// Offset of the next capability in bytes.
    free: usize,
    msi: Option<Msi>,
    msix: Option<Msix>,
}

impl Function {
    /// A function with an ordinary header (type 0), no base addresses and no capabilities. `class` is base class,
    /// subclass and programming interface from the high byte down.
    pub fn new(vendor: u16, device: u16, class: u32) -> Self {
        let mut registers = Registers::new();
        registers.place(header::VENDOR, &vendor.to_le_bytes());
        registers.place(header::DEVICE, &device.to_le_bytes());
        registers.place(header::CLASS, &class.to_le_bytes()[..3]);
        registers.give_to_guest(header::COMMAND, &[COMMAND_IO | COMMAND_MEMORY | COMMAND_MASTER]);
        Self { registers, bars: [None; BARS], last_capability: 0, free: FIRST_CAPABILITY, msi: None, msix: None }
    }

    /// The bridge between CPUs and bus 0.
    pub fn host_bridge() -> Self {
        Self::new(HOST_BRIDGE_VENDOR, HOST_BRIDGE_DEVICE, CLASS_HOST_BRIDGE)
    }

    /// Sets registers from `offset`; bytes past the end are dropped.
    pub fn place(&mut self, offset: usize, bytes: &[u8]) {
        self.registers.place(offset, bytes);
    }

    /// Lets a guest write the bits set in `mask`, from `offset`.
    pub fn allow_writes(&mut self, offset: usize, mask: &[u8]) {
        self.registers.give_to_guest(offset, mask);
    }

    /// The function writes the bits set in `mask` itself, from `offset`: see [`change`](Self::change).
    pub fn keep(&mut self, offset: usize, mask: &[u8]) {
        self.registers.keep(offset, mask);
    }

    /// The function changes bits of a register that it or the guest writes: those in `mask` become those of `value`.
    pub fn change(&mut self, register: u8, mask: u8, value: u8) {
        self.registers.change(register, mask, value);
    }

    /// Gives the function a base address register.
    ///
    /// # Errors
    /// [`Unfit`] if there is no such register, it is taken, or no function can have it.
    pub fn add_bar(&mut self, index: usize, bar: Bar) -> Result<(), Unfit> {
        let is_upper_half = |index: usize| {
            index.checked_sub(1).is_some_and(|below| self.bars[below].is_some_and(|bar| bar.registers() == 2))
        };
        let mut taken = index..index.saturating_add(bar.registers());
        let is_free = taken.end <= BARS && taken.all(|index| self.bars[index].is_none() && !is_upper_half(index));
        if !is_free || !bar.is_possible() {
            return Err(Unfit);
        }
        let (at, bytes) = (FIRST_BAR + 4 * index, 4 * bar.registers());
        self.registers.place(at, &bar.flags().to_le_bytes());
        self.registers.give_to_guest(at, &bar.write_mask().to_le_bytes()[..bytes]);
        self.bars[index] = Some(bar);
        Ok(())
    }

    /// Gives the function a capability: its number, the registers behind the link, and the bits of them that a guest
    /// can write. Returns where it is.
    ///
    /// # Errors
    /// [`Unfit`] if there is no room.
    pub fn add_capability(&mut self, number: u8, body: &[u8], writable: &[u8]) -> Result<usize, Unfit> {
        let at = self.free;
        let end = at + 2 + body.len();
        if end > CONFIG_BYTES || writable.len() > body.len() {
            return Err(Unfit);
        }
        self.registers.place(at, &[number, 0]);
        self.registers.place(at + 2, body);
        self.registers.give_to_guest(at + 2, writable);
        let link = if self.last_capability == 0 { header::CAPABILITIES } else { self.last_capability + 1 };
        self.registers.place(link, &[at as u8]);
        self.registers.place(header::STATUS, &[self.registers.u8(header::STATUS) | STATUS_CAPABILITIES]);
        (self.last_capability, self.free) = (at, end.next_multiple_of(4));
        Ok(at)
    }

    /// Gives the function MSI with 1 to 32 vectors, as a power of two.
    ///
    /// # Errors
    /// As [`add_capability`](Self::add_capability).
    pub fn add_msi(&mut self, vectors_log2: u8) -> Result<(), Unfit> {
        let (body, writable) = Msi::body(vectors_log2).ok_or(Unfit)?;
        let msi = Msi::new(self.add_capability(msi::CAPABILITY, &body, &writable)?, vectors_log2);
        let (at, mask) = msi.pending();
        self.registers.keep(at, &mask);
        self.msi = Some(msi);
        Ok(())
    }

    /// Gives the function MSI-X.
    ///
    /// # Errors
    /// As [`add_capability`](Self::add_capability).
    pub fn add_msix(&mut self, place: MsixPlace) -> Result<(), Unfit> {
        let (body, writable) = place.body().ok_or(Unfit)?;
        self.msix = Some(Msix::new(self.add_capability(msix::CAPABILITY, &body, &writable)?, place));
        Ok(())
    }

    /// Reads a register byte.
    pub fn read(&self, register: u8) -> u8 {
        self.registers.u8(register.into())
    }

    /// The guest writes a register byte, as far as its bits can be written.
    pub fn write(&mut self, register: u8, value: u8) {
        self.registers.write(register, value);
    }

    /// All registers.
    pub fn config(&self) -> &[u8; CONFIG_BYTES] {
        self.registers.all()
    }

    /// Returns where a base address register decodes; `None` if it does not.
    pub fn window(&self, index: usize) -> Option<Window> {
        let bar = (*self.bars.get(index)?)?;
        let enable = if bar.space() == Space::Io { COMMAND_IO } else { COMMAND_MEMORY };
        let (at, command) = (FIRST_BAR + 4 * index, self.registers.u8(header::COMMAND));
        let high = if bar.registers() == 2 { u64::from(self.registers.u32(at + 4)) << 32 } else { 0 };
        if command & enable == 0 { None } else { bar.window(high | u64::from(self.registers.u32(at))) }
    }

    /// Interrupts with a vector, by MSI-X or MSI, whichever the guest has enabled. False if neither is: then the device
    /// may use a line.
    pub fn raise(&mut self, vector: u16, outputs: &mut Outputs) -> bool {
        if let Some(msix) = self.msix.as_mut().filter(|msix| msix.is_enabled(&self.registers)) {
            msix.raise(vector, &self.registers, outputs);
        } else if let Some(msi) = self.msi.filter(|msi| msi.is_enabled(&self.registers)) {
            msi.raise(vector, &mut self.registers, outputs);
        } else {
            return false;
        }
        true
    }

    /// Sends interrupts that are pending and may be sent.
    pub fn send_pending(&mut self, outputs: &mut Outputs) {
        if let Some(msix) = &mut self.msix {
            msix.send_pending(&self.registers, outputs);
        }
        if let Some(msi) = self.msi {
            msi.send_pending(&mut self.registers, outputs);
        }
    }

    /// Reads the part of a base address register's range that MSI-X has; `None` if the access is to something else.
    pub fn read_msix(&self, at: At) -> Option<u64> {
        self.msix.as_ref()?.read(at)
    }

    /// Writes the part of a base address register's range that MSI-X has; false if the access is to something else.
    pub fn write_msix(&mut self, at: At, value: u64, outputs: &mut Outputs) -> bool {
        self.msix.as_mut().is_some_and(|msix| msix.write(at, value, &self.registers, outputs))
    }

    /// As after power-on.
    pub fn reset(&mut self) {
        self.registers.reset();
        if let Some(msix) = &mut self.msix {
            msix.reset();
        }
    }

    /// Bytes that [`save`](Self::save) writes.
    pub fn saved_bytes(&self) -> usize {
        size_of::<PciFunction>() + self.msix.as_ref().map_or(0, Msix::saved_bytes)
    }

    /// Writes registers and MSI-X table; returns their bytes.
    ///
    /// # Errors
    /// [`Full`] if there is no room.
    pub fn save(&self, slot: Slot, into: &mut [u8]) -> Result<usize, Full> {
        let function = PciFunction { slot: u32::from(slot.0).into(), zero: 0.into(), config: *self.config() };
        let used = piece::save(&function, into)?;
        let table = self.msix.as_ref().map(|msix| msix.save(into.get_mut(used..).ok_or(Full)?));
        Ok(used + table.unwrap_or(Ok(0))?)
    }

    /// Splits a saved state into what can be of this function in this slot, and what follows.
    ///
    /// # Errors
    /// [`StateError`] if the state is another function's, or differs from it in a read-only bit.
    pub fn check<'a>(&self, slot: Slot, from: &'a [u8]) -> Result<(SavedFunction<'a>, &'a [u8]), StateError> {
        let cut = StateError { field: "pci.functions", reason: "its state is cut off" };
        let (function, rest) = PciFunction::ref_from_prefix(from).map_err(|_| cut)?;
        if function.slot.get() != u32::from(slot.0) {
            return Err(StateError { field: "pci.functions", reason: "it is another slot's" });
        }
        self.registers.check(&function.config)?;
        let table_bytes = self.msix.as_ref().map_or(0, Msix::saved_bytes);
        let (table, rest) = rest.split_at_checked(table_bytes).ok_or(cut)?;
        if let Some(msix) = &self.msix {
            msix.check(table)?;
        }
        Ok((SavedFunction { config: &function.config, table }, rest))
    }

    /// Goes on from a state that has been checked.
    pub fn restore(&mut self, from: SavedFunction<'_>) {
        self.registers.restore(from.config);
        if let Some(msix) = &mut self.msix {
            msix.restore(from.table);
        }
    }
}

/// A function's saved state that has been checked.
#[derive(Clone, Copy, Debug)]
pub struct SavedFunction<'a> {
    config: &'a [u8; CONFIG_BYTES],
    table: &'a [u8],
}

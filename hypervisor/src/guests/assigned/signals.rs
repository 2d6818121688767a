// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts of a physical function: its MSI or MSI-X registers, which the host programs, and where its IOMMU sends
//! them (PCI Local Bus 3.0, section 6.8).

use ::pci::capability::Capability;
use ::pci::{Bdf, ConfigSpace as _, ConfigWrite as _};
use iommu::{Interrupt, Message};
use vm::addr::AccessSize;
use vm::devices::pci::MsixPlace;
use vm::devices::pci::assigned::{Interrupts, Raised};

use super::routes::{self, Owner};
use crate::arch::device_memory::DeviceMemory;
use crate::guests::pci;
use crate::kernel::iommu::guests as kernel_iommu;

/// Message control, behind the capability's number and link.
const CONTROL: u16 = 2;
const MSI_ENABLED: u16 = 1 << 0;
/// Vectors in use, as a power of two, from this bit on.
const MSI_VECTORS_SHIFT: u32 = 4;
const MSI_VECTORS: u16 = 0b111 << MSI_VECTORS_SHIFT;
const MSI_HAS_64_BITS: u16 = 1 << 7;
const MSI_HAS_MASKS: u16 = 1 << 8;
const MSI_ADDRESS: u16 = 4;
const MSIX_ENABLED: u16 = 1 << 15;
const MSIX_ALL_MASKED: u16 = 1 << 14;
/// An entry of the MSI-X table: address, data, control.
const ENTRY_BYTES: u64 = 16;
const ENTRY_DATA: u64 = 8;
const ENTRY_CONTROL: u64 = 12;
const ENTRY_MASKED: u64 = 1 << 0;

/// A function's interrupts.
pub struct Signals {
    owner: Owner,
    msi: Option<u16>,
    msix: Option<u16>,
    table: Option<(DeviceMemory, MsixPlace)>,
    interrupts: Interrupts,
    /// The guest asked for what could not be done yet: this image had not gone on with the IOMMUs.
    is_behind: bool,
}

impl Signals {
    /// Those of a function with these capabilities, which are closed.
    pub fn new(owner: Owner, capabilities: &[Capability]) -> Self {
        let find = |id| capabilities.iter().find(|known| known.id == id).map(|known| u16::from(known.register));
        Self::at(owner, find(Capability::MSI), find(Capability::MSI_X))
    }

    /// Those of a function whose capabilities are at these registers.
    pub fn at(owner: Owner, msi: Option<u16>, msix: Option<u16>) -> Self {
        Self { owner, msi, msix, table: None, interrupts: Interrupts::Off, is_behind: false }
    }

    /// Their owner.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// The registers of MSI and MSI-X; 0 without them.
    pub fn registers(&self) -> (u8, u8) {
        (self.msi.unwrap_or(0) as u8, self.msix.unwrap_or(0) as u8)
    }

    /// They are open as the image before has opened them.
    pub fn adopt(&mut self, interrupts: Interrupts, routes: &mut dyn Iterator<Item = (u16, Interrupt)>) {
        routes::forget(self.owner);
        self.interrupts = interrupts;
        self.is_behind = false;
        routes.for_each(|(index, interrupt)| routes::adopt(self.owner, index, interrupt));
    }

    /// Returns whether something is to be made up for, once.
    pub fn take_behind(&mut self) -> bool {
        core::mem::take(&mut self.is_behind)
    }

    /// Where its MSI-X table is.
    pub fn set_table(&mut self, table: Option<(DeviceMemory, MsixPlace)>) {
        self.table = table;
    }

    /// Closes what is open, and opens what is named. Of MSI-X no vector is open yet.
    pub fn set(&mut self, place: Bdf, interrupts: Interrupts) {
        self.close_all(place);
        self.is_behind |= !kernel_iommu::is_ready();
        if self.is_behind {
            return;
        }
        let entries = match interrupts {
            Interrupts::Off | Interrupts::Line => return,
            Interrupts::Msi { vectors } => vectors as u16,
            Interrupts::MsiX => self.table.map_or(0, |(_, table)| table.vectors),
        };
        if let Err(problem) = kernel_iommu::open_interrupts(place, entries) {
            return log::error!("PCI {place}: its interrupts stay closed: {problem}");
        }
        self.interrupts = interrupts;
        match interrupts {
            Interrupts::Msi { vectors } => self.open_msi(place, vectors),
            _ => self.open_msix(place),
        }
    }

    /// Opens an MSI-X vector.
    pub fn open(&mut self, place: Bdf, vector: u16) {
        self.is_behind |= !kernel_iommu::is_ready();
        if self.is_behind {
            return;
        }
        let Some((memory, table)) = self.table.filter(|_| self.interrupts == Interrupts::MsiX) else { return };
        if vector >= table.vectors {
            return;
        }
        match self.route(place, vector) {
            Ok(message) => write_entry(memory, table, vector, Some(message)),
            Err(problem) => log::error!("PCI {place}: interrupt {vector} stays closed: {problem}"),
        }
    }

    /// Closes everything: the function sends nothing, and its IOMMU lets nothing through.
    pub fn close_all(&mut self, place: Bdf) {
        if core::mem::take(&mut self.interrupts) != Interrupts::Off {
            self.close(place);
        }
    }

    /// Opens from scratch what the guest has asked for.
    pub fn reopen(&mut self, place: Bdf, interrupts: Interrupts, vectors: &[u16]) {
        self.interrupts = Interrupts::Off;
        self.close(place);
        self.set(place, interrupts);
        vectors.iter().for_each(|vector| self.open(place, *vector));
    }

    fn close(&mut self, place: Bdf) {
        self.disable(place);
        if !kernel_iommu::is_ready() {
            // What the function has under way is closed as soon as that can be.
            self.is_behind = true;
            return;
        }
        if let Err(problem) = kernel_iommu::close_interrupts(place) {
            log::error!("PCI {place}: its interrupts may stay open: {problem}");
        }
        routes::close(self.owner);
    }

    /// The vCPU that interrupt `raised` is for is on another CPU: it goes there from now on.
    pub fn follow(&mut self, place: Bdf, raised: Raised, cpu: u32) {
        let Raised::Vector(index) = raised else { return };
        let moved = routes::follow(self.owner, index, cpu, |interrupt| {
            kernel_iommu::set_interrupt(place, index, Some(interrupt))
        });
        if let Err(problem) = moved {
            log::debug!("PCI {place}: interrupt {index} stays where it is: {problem}");
        }
    }

    fn route(&self, place: Bdf, index: u16) -> Result<Message, alloc::string::String> {
        routes::open(self.owner, index, |interrupt| kernel_iommu::set_interrupt(place, index, Some(interrupt)))?;
        kernel_iommu::message(place, index)
    }

    fn open_msi(&mut self, place: Bdf, vectors: u32) {
        let Some(at) = self.msi else { return };
        let mut first = None;
        for index in 0..vectors as u16 {
            match self.route(place, index) {
                Ok(message) => _ = first.get_or_insert(message),
                Err(problem) => return log::error!("PCI {place}: MSI stays off: {problem}"),
            }
        }
        if let Some(message) = first {
            pci::with_config(|config| {
                let control = (config.read(place, at) >> 16) as u16;
                config.write32(place, at + MSI_ADDRESS, message.address as u32);
                let has_64_bits = control & MSI_HAS_64_BITS != 0;
                let data = at + if has_64_bits { 12 } else { 8 };
                if has_64_bits {
                    config.write32(place, at + 8, (message.address >> 32) as u32);
                }
                config.write16(place, data, message.data as u16);
                if control & MSI_HAS_MASKS != 0 {
                    config.write32(place, data + 4, 0);
                }
                let used = (vectors.trailing_zeros() as u16) << MSI_VECTORS_SHIFT;
                config.write16(place, at + CONTROL, control & !MSI_VECTORS | used | MSI_ENABLED);
            });
        }
    }

    fn open_msix(&mut self, place: Bdf) {
        let (Some(at), Some((memory, table))) = (self.msix, self.table) else { return };
        let set = |clear: u16, bits: u16| {
            pci::with_config(|config| {
                let control = (config.read(place, at) >> 16) as u16;
                config.write16(place, at + CONTROL, control & !clear | bits);
            });
        };
        // The table can be written for certain while MSI-X is enabled; none of it is sent before it is right.
        set(0, MSIX_ENABLED | MSIX_ALL_MASKED);
        (0..table.vectors).for_each(|vector| write_entry(memory, table, vector, None));
        set(MSIX_ALL_MASKED, MSIX_ENABLED);
    }

    fn disable(&self, place: Bdf) {
        for (at, bit) in [(self.msi, MSI_ENABLED), (self.msix, MSIX_ENABLED)] {
            let Some(at) = at else { continue };
            pci::with_config(|config| {
                let control = (config.read(place, at) >> 16) as u16;
                // One that has vanished reads as ones.
                if control & bit != 0 && control != u16::MAX {
                    config.write16(place, at + CONTROL, control & !bit);
                }
            });
        }
    }
}

/// Writes an entry of the MSI-X table; masked without a message.
fn write_entry(memory: DeviceMemory, table: MsixPlace, vector: u16, message: Option<Message>) {
    let at = u64::from(table.table) + u64::from(vector) * ENTRY_BYTES;
    let write = |offset, value| memory.write(at + offset, AccessSize::Dword, value);
    write(ENTRY_CONTROL, ENTRY_MASKED);
    if let Some(message) = message {
        write(0, message.address & 0xffff_ffff);
        write(4, message.address >> 32);
        write(ENTRY_DATA, message.data.into());
        write(ENTRY_CONTROL, 0);
    }
}

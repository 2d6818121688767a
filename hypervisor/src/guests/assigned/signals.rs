// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts of a physical function: its MSI or MSI-X registers, which the host programs, and where its IOMMU sends
//! them (PCI Local Bus 3.0, section 6.8).

use alloc::string::String;
use alloc::vec::Vec;

use ::pci::capability::Capability;
use ::pci::{Bdf, message};
use iommu::{Interrupt, Message};
use vm::addr::AccessSize;
use vm::devices::pci::MsixPlace;
use vm::devices::pci::assigned::Interrupts;

use super::lines::Line;
use super::routes::{Owner, Routes};
use crate::arch::device_memory::DeviceMemory;
use crate::guests::pci;
use crate::kernel::iommu::guests as kernel_iommu;

/// An entry of the MSI-X table: address, data, control.
const ENTRY_BYTES: u64 = 16;
const ENTRY_DATA: u64 = 8;
const ENTRY_CONTROL: u64 = 12;
const ENTRY_MASKED: u64 = 1 << 0;
/// Interrupts that a function with MSI has at most.
const MOST_MSI: usize = 32;

/// A function's interrupts.
pub struct Signals {
    routes: Routes,
    msi: Option<u16>,
    msix: Option<u16>,
    table: Option<(DeviceMemory, MsixPlace)>,
    line: Option<Line>,
    interrupts: Interrupts,
    /// The guest has asked for something before this image had adopted the IOMMUs: it is done when it has.
    is_behind: bool,
}

impl Signals {
    /// The signals of a function with these capabilities, closed.
    pub fn new(owner: Owner, capabilities: &[Capability]) -> Self {
        let find = |id| capabilities.iter().find(|known| known.id == id).map(|known| u16::from(known.register));
        Self::at(owner, find(Capability::MSI), find(Capability::MSI_X))
    }

    /// The signals of a function with its capabilities at these registers.
    pub fn at(owner: Owner, msi: Option<u16>, msix: Option<u16>) -> Self {
        let mut routes = Routes::new(owner);
        routes.reserve(if msi.is_some() { MOST_MSI } else { 1 });
        Self { routes, msi, msix, table: None, line: None, interrupts: Interrupts::Off, is_behind: false }
    }

    /// Returns the destination of an open one.
    pub fn destination(&self, index: u16) -> Option<Interrupt> {
        self.routes.destination(index)
    }

    /// The function that has them.
    pub fn owner(&self) -> Owner {
        self.routes.owner()
    }

    /// Gives the function a line, or takes it away.
    pub fn set_line(&mut self, line: Option<Line>) {
        self.line = line;
    }

    /// The line.
    pub fn line(&mut self) -> Option<&mut Line> {
        self.line.as_mut()
    }

    /// The global system interrupt of the line.
    pub fn gsi(&self) -> Option<u32> {
        self.line.as_ref().map(Line::gsi)
    }

    /// The registers of MSI and MSI-X; 0 without them.
    pub fn registers(&self) -> (u8, u8) {
        (self.msi.unwrap_or(0) as u8, self.msix.unwrap_or(0) as u8)
    }

    /// Adopts them as the image before has opened them. Allocates nothing: there is room for all.
    pub fn adopt(&mut self, interrupts: Interrupts, routes: &mut dyn Iterator<Item = (u16, Interrupt)>) {
        self.routes.discard();
        self.interrupts = interrupts;
        self.is_behind = false;
        routes.for_each(|(index, interrupt)| self.routes.adopt(index, interrupt));
    }

    /// Returns whether the guest has asked for something that is not done yet, once.
    pub fn take_behind(&mut self) -> bool {
        core::mem::take(&mut self.is_behind)
    }

    /// The location of its MSI-X table.
    pub fn set_table(&mut self, table: Option<(DeviceMemory, MsixPlace)>) {
        self.table = table;
        self.routes.reserve(table.map_or(0, |(_, place)| place.vectors.into()));
    }

    /// Closes what is open, and opens what is named. Of MSI-X no vector is open yet.
    pub fn set(&mut self, place: Bdf, interrupts: Interrupts) {
        self.close_all(place);
        if interrupts == Interrupts::Line && self.open_line_beside() {
            return;
        }
        self.is_behind |= !kernel_iommu::is_ready();
        if self.is_behind {
            return;
        }
        let entries = match interrupts {
            Interrupts::Off => return,
            Interrupts::Line => return self.open_line(place),
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
        match core::mem::take(&mut self.interrupts) {
            Interrupts::Off => {}
            Interrupts::Line => self.close_line(),
            Interrupts::Msi { .. } | Interrupts::MsiX => self.close(place),
        }
    }

    fn open_line(&mut self, place: Bdf) {
        let Some(line) = &mut self.line else { return };
        match line.open(&mut self.routes) {
            Ok(()) => self.interrupts = Interrupts::Line,
            Err(problem) => log::error!("PCI {place}: its line stays closed: {problem}"),
        }
    }

    /// Opens the line if another function has its input open. It must not wait for the IOMMU then: the hardware
    /// interrupts from now on, and the other function would be taken for the cause.
    fn open_line_beside(&mut self) -> bool {
        let is_open = self.line.as_mut().is_some_and(|line| line.open_beside(&mut self.routes));
        if is_open {
            self.interrupts = Interrupts::Line;
        }
        is_open
    }

    fn close_line(&mut self) {
        self.line.iter_mut().for_each(Line::close);
        self.routes.close();
    }

    /// Opens from scratch what the guest has asked for.
    pub fn reopen(&mut self, place: Bdf, interrupts: Interrupts, vectors: &[u16]) {
        self.line.iter_mut().for_each(Line::close);
        self.interrupts = Interrupts::Off;
        self.close(place);
        self.set(place, interrupts);
        vectors.iter().for_each(|vector| self.open(place, *vector));
    }

    fn close(&mut self, place: Bdf) {
        self.disable(place);
        if !kernel_iommu::is_ready() {
            // Interrupts that the function has under way are closed as soon as possible.
            self.is_behind = true;
            return;
        }
        if let Err(problem) = kernel_iommu::close_interrupts(place) {
            log::error!("PCI {place}: its interrupts may stay open: {problem}");
        }
        self.routes.close();
    }

    /// Sends interrupt `index` to another CPU from now on, unless it goes there.
    ///
    /// # Errors
    /// It goes where it went.
    pub fn follow(&mut self, place: Bdf, index: u16, cpu: u32) -> Result<(), String> {
        self.routes.follow(index, cpu, |interrupt| kernel_iommu::set_interrupt(place, index, Some(interrupt)))
    }

    fn route(&mut self, place: Bdf, index: u16) -> Result<Message, String> {
        self.routes.open(index, |interrupt| kernel_iommu::set_interrupt(place, index, Some(interrupt)))?;
        kernel_iommu::message(place, index)
    }

    fn open_msi(&mut self, place: Bdf, vectors: u32) {
        let Some(at) = self.msi else { return };
        let messages: Result<Vec<Message>, String> =
            (0..vectors as u16).map(|index| self.route(place, index)).collect();
        match messages.as_deref() {
            // The function adds the vector's number to the data.
            Ok([first, ..]) => {
                let message = (first.address, first.data as u16);
                pci::with_config(|config| message::enable_msi(config, place, at, message, vectors));
            }
            Ok([]) => {}
            Err(problem) => log::error!("PCI {place}: MSI stays disabled: {problem}"),
        }
    }

    fn open_msix(&mut self, place: Bdf) {
        let (Some(at), Some((memory, table))) = (self.msix, self.table) else { return };
        let mask_all = || (0..table.vectors).for_each(|vector| write_entry(memory, table, vector, None));
        pci::with_config(|config| message::enable_msix(config, place, at, mask_all));
    }

    fn disable(&self, place: Bdf) {
        pci::with_config(|config| message::disable(config, place, self.msi, self.msix));
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

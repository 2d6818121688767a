// SPDX-License-Identifier: MIT OR Apache-2.0
//! A physical function as a guest has it: what [`Assigned`](vm::devices::pci::assigned::Assigned) asks of the host.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use ::iommu::Interrupt;
use ::pci::{Bdf, ConfigSpace as _, ConfigWrite as _};
use units::{PhysAddr, PhysRange};
use vm::addr::AccessSize;
use vm::devices::pci::assigned::{
    Description, HostIdentity, Interrupts, LINE, Physical, Piece, Route, VirtualFunctions,
};
use vm::devices::pci::{BARS, Space as BarSpace};

use super::lines::Line;
use super::signals::Signals;
use super::{routes, under_way};
use crate::arch::device_memory::{DeviceMemory, DevicePorts};
use crate::arch::percpu;
use crate::arch::virt::Space;
use crate::guests::guest::Guest;
use crate::guests::pci;
use crate::kernel::iommu::guests as iommu;

/// One base address register's range, as the host reaches it.
#[derive(Clone, Copy, Debug)]
enum Reached {
    Memory(PhysRange, DeviceMemory),
    Ports(DevicePorts),
}

/// A physical function of a guest's.
pub struct HostFunction {
    place: Bdf,
    guest: Arc<Guest>,
    space: Arc<Space>,
    ranges: [Option<Reached>; BARS],
    signals: Signals,
    /// The guest has asked for a reset that has not begun.
    is_reset_wanted: bool,
    virtual_wanted: u8,
    virtual_functions: VirtualFunctions,
}

impl HostFunction {
    /// A function that is about to be the guest's; the guest does not reach it yet.
    pub fn new(place: Bdf, guest: Arc<Guest>, space: Arc<Space>, signals: Signals) -> Self {
        Self {
            place,
            guest,
            space,
            ranges: [None; BARS],
            signals,
            is_reset_wanted: false,
            virtual_wanted: 0,
            virtual_functions: VirtualFunctions::default(),
        }
    }

    /// The function.
    pub fn place(&self) -> Bdf {
        self.place
    }

    /// Its interrupts.
    pub fn signals(&mut self) -> &mut Signals {
        &mut self.signals
    }

    /// Returns whether it is to be reset, once.
    pub fn take_wanted_reset(&mut self) -> bool {
        core::mem::take(&mut self.is_reset_wanted)
    }

    /// Returns how many virtual functions the guest wants.
    pub fn virtual_wanted(&self) -> u8 {
        self.virtual_wanted
    }

    /// Returns the known facts of its virtual functions.
    pub fn known_virtual_functions(&self) -> VirtualFunctions {
        self.virtual_functions
    }

    /// Notes what its virtual functions are.
    pub fn set_known_virtual_functions(&mut self, known: VirtualFunctions) {
        self.virtual_functions = known;
    }

    /// Reaches the function's ranges from now on, which have been checked.
    ///
    /// # Errors
    /// The problem of one.
    pub fn open(&mut self, description: &Description) -> Result<(), String> {
        for (bar, (range, reached)) in description.ranges.iter().zip(&mut self.ranges).enumerate() {
            let Some(range) = range else { continue };
            let bytes = range.bar.bytes();
            *reached = Some(match range.bar.space() {
                BarSpace::Memory => {
                    let range = PhysRange::from_start(PhysAddr(range.address), bytes);
                    let range = range.ok_or_else(|| format!("its range {bar} has an impossible address"))?;
                    let memory = DeviceMemory::map(range).map_err(|error| format!("its range {bar}: {error:?}"))?;
                    Reached::Memory(range, memory)
                }
                BarSpace::Io => {
                    let ports = DevicePorts::new(range.address as u16, bytes as u16);
                    Reached::Ports(ports.ok_or_else(|| format!("its range {bar} is the host's own ports"))?)
                }
            });
        }
        let table = description.msix.and_then(|place| match self.ranges.get(usize::from(place.bar)) {
            Some(Some(Reached::Memory(_, memory))) => Some((*memory, place)),
            _ => None,
        });
        self.signals.set_table(table);
        Ok(())
    }

    fn range(&self, bar: u8) -> Option<Reached> {
        *self.ranges.get(usize::from(bar))?
    }

    /// Adopts its line as the image before has left it. The one of a rehearsal is dropped before.
    fn adopt_line(&mut self, route: Option<Route>) {
        self.signals.set_line(None);
        let Some(route) = route else { return };
        let vector = (route.vector != 0).then_some(route.vector);
        match Line::adopt(self.place, route.gsi, vector, self.signals.owner()) {
            Ok(line) => self.signals.set_line(Some(line)),
            Err(problem) => log::error!("PCI {}: its interrupt input (GSI {}) {problem}", self.place, route.gsi),
        }
    }

    /// Closes its interrupts, and has its IOMMU block it.
    ///
    /// # Errors
    /// The IOMMU does not answer: the function may reach the guest's memory for good.
    pub fn close(&mut self) -> Result<(), String> {
        self.signals.close_all(self.place);
        iommu::release(self.place)
    }

    /// Closes it as [`Self::close`] does, while its guest and the guest's other functions go on.
    ///
    /// # Errors
    /// As [`Self::close`]'s.
    pub fn leave(&mut self) -> Result<(), String> {
        self.signals.close_all(self.place);
        iommu::detach(self.place)
    }
}

fn interrupt(route: Route) -> Interrupt {
    Interrupt { vector: route.vector, destination: route.destination, is_level: false }
}

impl Physical for HostFunction {
    fn read_config(&mut self, register: u16, size: AccessSize) -> u32 {
        let word = pci::with_config(|config| config.read(self.place, register & !3));
        let shifted = word >> (8 * (register & 3));
        if size == AccessSize::Qword { u32::MAX } else { shifted & size.mask() as u32 }
    }

    fn write_config(&mut self, register: u16, size: AccessSize, value: u32) {
        pci::with_config(|config| match size {
            AccessSize::Byte => config.write8(self.place, register, value as u8),
            AccessSize::Word => config.write16(self.place, register, value as u16),
            _ => config.write32(self.place, register, value),
        });
    }

    fn read(&mut self, bar: u8, offset: u64, size: AccessSize) -> u64 {
        match self.range(bar) {
            Some(Reached::Memory(_, memory)) => memory.read(offset, size),
            Some(Reached::Ports(ports)) => ports.read(offset, size),
            None => size.mask(),
        }
    }

    fn write(&mut self, bar: u8, offset: u64, size: AccessSize, value: u64) {
        match self.range(bar) {
            Some(Reached::Memory(_, memory)) => memory.write(offset, size, value),
            Some(Reached::Ports(ports)) => ports.write(offset, size, value),
            None => {}
        }
    }

    fn map(&mut self, piece: Piece) -> bool {
        let Some(Reached::Memory(range, _)) = self.range(piece.bar) else { return false };
        let start = range.start().checked_add(piece.offset);
        let part = start.and_then(|start| PhysRange::from_start(start, piece.bytes));
        let Some(part) = part.filter(|part| range.contains_range(*part)) else { return false };
        self.space.show_device(piece.gpa.0, part).is_ok()
    }

    fn unmap(&mut self, piece: Piece) {
        if let Err(error) = self.space.hide(piece.gpa.0, piece.bytes) {
            log::error!("guest {}: PCI {}: {error}", self.guest.config.name, self.place);
        }
        (0..self.guest.config.vcpus as usize).for_each(|vcpu| percpu::wake(self.guest.cpu_to_notify(vcpu)));
    }

    fn set_interrupts(&mut self, interrupts: Interrupts) {
        self.signals.set(self.place, interrupts);
    }

    fn open_vector(&mut self, vector: u16) {
        self.signals.open(self.place, vector);
    }

    fn identity(&self) -> HostIdentity {
        let (msi, msix) = self.signals.registers();
        HostIdentity { place: self.place, msi, msix }
    }

    fn route(&self, vector: u16) -> Route {
        let gsi = if vector == LINE { self.signals.gsi().unwrap_or(0) } else { 0 };
        let found = self.signals.destination(vector);
        let (destination, vector) = found.map_or((0, 0), |found| (found.destination, found.vector));
        Route { destination, vector, gsi }
    }

    fn is_possible(&self, route: Route) -> bool {
        routes::is_possible(interrupt(route))
    }

    fn adopt(&mut self, interrupts: Interrupts, routes: &mut dyn Iterator<Item = (u16, Route)>) {
        let mut line = None;
        let mut others = routes.filter_map(|(index, route)| {
            if index == LINE {
                line = Some(route);
            }
            (index != LINE || route.vector != 0).then(|| (index, interrupt(route)))
        });
        self.signals.adopt(interrupts, &mut others);
        self.adopt_line(line);
    }

    fn unmask(&mut self) {
        self.signals.line().into_iter().for_each(Line::unmask);
    }

    fn set_virtual_functions(&mut self, number: u8) {
        if self.virtual_wanted != number {
            self.virtual_wanted = number;
            under_way::ask();
        }
    }

    fn virtual_functions(&self) -> VirtualFunctions {
        self.virtual_functions
    }

    fn adopt_virtual_functions(&mut self, number: u8, known: VirtualFunctions) {
        (self.virtual_wanted, self.virtual_functions) = (number, known);
    }

    fn reset(&mut self) -> bool {
        self.is_reset_wanted = true;
        under_way::ask();
        true
    }
}

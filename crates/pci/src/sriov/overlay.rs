// SPDX-License-Identifier: MIT OR Apache-2.0
//! Configuration space in which virtual functions are functions like others. Their own registers name neither vendor
//! and device nor ranges (PCI Express Base 5.0, section 9.3.4): what the physical function states is read in their
//! place, so that code which probes, sizes, resets or assigns a function needs to know nothing of this.

use alloc::vec::Vec;

use crate::{Bdf, ConfigSpace, ConfigWrite};

const IDENTITY: u16 = 0x00;
const CLASS: u16 = 0x08;
const FIRST_BAR: u16 = 0x10;
const BARS_END: u16 = 0x28;

/// A virtual function that is enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtualFunction {
    /// Its address.
    pub place: Bdf,
    /// The physical function.
    pub physical: Bdf,
    /// Vendor and device.
    pub(super) identity: u32,
    /// Its base address registers.
    pub(super) bars: [u32; 6],
    /// The bits of each that can be written.
    pub(super) writable: [u32; 6],
}

/// A machine's configuration space with its virtual functions.
#[derive(Debug)]
pub struct WithVirtual<S> {
    /// The configuration space of the hardware.
    pub config: S,
    functions: Vec<VirtualFunction>,
}

impl<S> WithVirtual<S> {
    /// Without virtual functions.
    pub const fn new(config: S) -> Self {
        Self { config, functions: Vec::new() }
    }

    /// Returns the virtual functions that are enabled.
    pub fn functions(&self) -> &[VirtualFunction] {
        &self.functions
    }

    /// Returns the virtual functions of a physical function, by rising address.
    pub fn of(&self, physical: Bdf) -> impl Iterator<Item = Bdf> {
        self.functions.iter().filter(move |function| function.physical == physical).map(|function| function.place)
    }

    /// Returns whether a function is a virtual one: the driver of its physical function configures it.
    pub fn is_virtual(&self, place: Bdf) -> bool {
        self.position(place).is_some()
    }

    pub(super) fn add(&mut self, function: VirtualFunction) {
        self.functions.push(function);
    }

    pub(super) fn remove(&mut self, physical: Bdf) {
        self.functions.retain(|function| function.physical != physical);
    }

    fn position(&self, place: Bdf) -> Option<usize> {
        self.functions.iter().position(|function| function.place == place)
    }
}

fn bar(register: u16) -> Option<usize> {
    (FIRST_BAR..BARS_END).contains(&register).then(|| usize::from((register - FIRST_BAR) / 4))
}

impl<S: ConfigSpace> ConfigSpace for WithVirtual<S> {
    fn read(&mut self, place: Bdf, register: u16) -> u32 {
        let Some(function) = self.position(place).map(|at| self.functions[at]) else {
            return self.config.read(place, register);
        };
        match (register, bar(register)) {
            // A register that is never all ones shows whether it is there.
            (IDENTITY, _) if self.config.read(place, CLASS) == u32::MAX => u32::MAX,
            (IDENTITY, _) => function.identity,
            (_, Some(bar)) => function.bars[bar],
            _ => self.config.read(place, register),
        }
    }

    fn now(&mut self) -> u64 {
        self.config.now()
    }

    fn pause(&mut self) {
        self.config.pause();
    }
}

impl<S: ConfigWrite> ConfigWrite for WithVirtual<S> {
    fn write8(&mut self, place: Bdf, register: u16, value: u8) {
        self.config.write8(place, register, value);
    }

    fn write16(&mut self, place: Bdf, register: u16, value: u16) {
        self.config.write16(place, register, value);
    }

    fn write32(&mut self, place: Bdf, register: u16, value: u32) {
        match (self.position(place), bar(register)) {
            (Some(at), Some(bar)) => {
                let function = &mut self.functions[at];
                let writable = function.writable[bar];
                function.bars[bar] = function.bars[bar] & !writable | value & writable;
            }
            _ => self.config.write32(place, register, value),
        }
    }
}

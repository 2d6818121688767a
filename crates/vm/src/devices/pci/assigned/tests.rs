// SPDX-License-Identifier: MIT OR Apache-2.0
mod interrupts;
mod probing;
mod properties;
mod resets;
mod sriov;
mod states;
mod virtio;
mod windows;

use std::sync::Mutex as StdMutex;
use std::vec::Vec;

use ::pci::Bdf;
use alloc::sync::Arc;
use proptest::prelude::*;
use spin::Mutex;

use super::*;
use crate::addr::Gpa;
use crate::devices::bus::Bus;
use crate::devices::device::Device as _;
use crate::devices::pci::Configured as _;
use crate::platform::layout;
use crate::testing::{FakeAddressSpace, FakePhysical, FakeWorld};

const DWORD: AccessSize = AccessSize::Dword;
const MEMORY_BYTES: u64 = 4 << 30;
/// Above the guest's 4 GiB of memory, of which one is above 4 GiB.
const HIGH: u64 = 0x1_4000_0000;
/// Where the virtual capabilities are: in the order in which they are built.
const POWER: u64 = 0x40;
const EXPRESS: u64 = 0x48;
const MSI: u64 = 0x84;
const MSIX: u64 = 0x9c;
const DEVICE_CONTROL: u64 = EXPRESS + 8;
const RESET: u32 = 1 << 15;
const PIN: u8 = 16;

type Shared = Arc<Mutex<Endpoint<Assigned<FakePhysical>>>>;

fn name() -> Bdf {
    "0000:01:00.0".parse().expect("a place")
}

/// A guest's bus with physical functions in slots 8, 16 and so on; the first one has a line.
struct Lab {
    bus: Bus,
    functions: Vec<Shared>,
    world: FakeWorld,
    space: std::sync::Arc<StdMutex<FakeAddressSpace>>,
}

impl Lab {
    fn new(functions: u32) -> Self {
        let lab = Self::bare();
        (0..functions).fold(lab, |mut lab, number| {
            let mut physical = FakePhysical::new(number, &lab.space);
            let line = (number == 0).then_some(PIN);
            let description = Description::probe(name(), &mut physical, line).expect("it is good");
            physical.is_sealed = true;
            lab.attach(description, physical);
            lab
        })
    }

    fn bare() -> Self {
        let (bus, space) = (Bus::new(false), FakeAddressSpace::new(MEMORY_BYTES));
        bus.open_apertures(MEMORY_BYTES);
        Self { bus, functions: Vec::new(), world: FakeWorld::default(), space }
    }

    fn attach(&mut self, description: Description, physical: FakePhysical) {
        assert!(self.try_attach(description, physical), "its slot and the pin of its line are free");
    }

    /// Returns whether the bus has room for it: no other function's line is at its pin.
    fn try_attach(&mut self, description: Description, physical: FakePhysical) -> bool {
        let slot = Slot(8 + 8 * self.functions.len() as u8);
        let function = Assigned::in_slot(slot, description, physical).expect("there can be one");
        let attached = self.bus.attach_function(function).ok();
        let is_attached = attached.is_some();
        self.functions.extend(attached);
        is_attached
    }

    /// Reads at an address that no memory has, by an exit.
    fn read(&mut self, address: u64, size: AccessSize) -> u64 {
        let Some((device, at)) = self.bus.find_memory(Gpa(address), size).and_then(|at| self.bus.device(at)) else {
            return size.mask();
        };
        let value = device.lock().read(at, &mut self.world.context()) & size.mask();
        self.bus.apply_lines(&mut self.world.outputs);
        value
    }

    fn write(&mut self, address: u64, size: AccessSize, value: u64) {
        if let Some((device, at)) = self.bus.find_memory(Gpa(address), size).and_then(|at| self.bus.device(at)) {
            device.lock().write(at, value & size.mask(), &mut self.world.context());
            self.bus.apply_lines(&mut self.world.outputs);
        }
    }

    fn config(&mut self, function: u64, register: u64) -> u32 {
        self.read(layout::ECAM.0 + (function + 1) * 0x8000 + register, DWORD) as u32
    }

    fn set_config(&mut self, function: u64, register: u64, value: u32) {
        self.write(layout::ECAM.0 + (function + 1) * 0x8000 + register, DWORD, value.into());
    }

    /// Moves the wide range of a function, and lets it decode memory and master the bus.
    fn enable_at(&mut self, function: u64, address: u64) {
        self.set_config(function, 0x10, address as u32);
        self.set_config(function, 0x14, (address >> 32) as u32);
        self.set_config(function, 0x04, 0b110);
    }

    /// The guest's address and length of each piece that is mapped.
    fn mapped(&self) -> Vec<(u64, u64)> {
        let pieces = self.space.lock().unwrap();
        let mut mapped: Vec<_> = pieces.pieces.iter().map(|(_, piece)| (piece.gpa.0, piece.bytes)).collect();
        mapped.sort_unstable();
        mapped
    }

    fn with<R>(
        &mut self,
        function: usize,
        act: impl FnOnce(&mut Endpoint<Assigned<FakePhysical>>, &mut Outputs) -> R,
    ) -> R {
        let result = act(&mut self.functions[function].lock(), &mut self.world.outputs);
        self.bus.apply_lines(&mut self.world.outputs);
        result
    }

    fn phase(&self, function: usize) -> Phase {
        self.functions[function].lock().phase()
    }

    fn physical<R>(&mut self, function: usize, act: impl FnOnce(&mut FakePhysical) -> R) -> R {
        act(self.functions[function].lock().physical())
    }

    /// The vectors of the messages that were sent.
    fn sent(&mut self) -> Vec<u8> {
        self.world.outputs.take_messages().map(|message| message.vector).collect()
    }
}

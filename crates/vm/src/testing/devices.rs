// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host for devices as plain data, and a PCI function to try the bus with.

use std::collections::VecDeque;
use std::vec::Vec;

use handover::Full;

use super::FakeMemory;
use crate::addr::Gpa;
use crate::devices::StateError;
use crate::devices::device::{At, Backend, Context};
use crate::devices::outputs::Outputs;
use crate::devices::pci::{Bar, Behind, Endpoint, Function, MsixPlace, Slot};

/// Host, memory and outputs for accesses to a device without a machine.
#[allow(missing_docs)]
pub struct FakeWorld {
    pub backend: FakeBackend,
    pub memory: FakeMemory,
    pub outputs: Outputs,
}

/// A host that is plain data.
#[derive(Default)]
#[allow(missing_docs)]
pub struct FakeBackend {
    pub unix_seconds: u64,
    pub console: Vec<u8>,
    pub typed: VecDeque<u8>,
}

impl Default for FakeWorld {
    fn default() -> Self {
        Self { backend: FakeBackend::default(), memory: FakeMemory::new(0x1000), outputs: Outputs::new() }
    }
}

impl FakeWorld {
    /// The context of one access.
    pub fn context(&mut self) -> Context<'_> {
        Context { backend: &mut self.backend, memory: &self.memory, outputs: &mut self.outputs }
    }
}

impl Backend for FakeBackend {
    fn unix_seconds(&self) -> u64 {
        self.unix_seconds
    }
    fn console(&mut self, byte: u8) {
        self.console.push(byte);
    }
    fn console_input(&mut self) -> Option<u8> {
        self.typed.pop_front()
    }
}

/// A device behind a PCI function, as the next one may be: registers in each range, DMA, interrupts, a state.
///
/// | offset | write | read |
/// |---|---|---|
/// | 0 | the register | the register |
/// | 4 | interrupts with this vector | interrupts that found neither MSI-X nor MSI enabled |
/// | 8 | writes the register to this address in memory | all ones |
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    register: u32,
    unsent: u32,
}

impl Probe {
    /// A kind of device that no version knows.
    pub const KIND: u32 = 0x7e57;
    /// The range with registers and the MSI-X table, 32 bits wide.
    pub const MEMORY: u8 = 0;
    /// The range of ports.
    pub const PORTS: u8 = 1;
    /// The range of memory, 64 bits wide.
    pub const WIDE: u8 = 2;
    /// Offset of the MSI-X table in bytes.
    pub const TABLE: u32 = 0x800;
    /// Offset of the pending bits in bytes.
    pub const PENDING: u32 = 0xc00;
    /// Vectors.
    pub const VECTORS: u16 = 40;

    /// The probe in a slot.
    pub fn in_slot(slot: Slot) -> Endpoint<Self> {
        let mut function = Function::new(0x1234, 0x7e57, 0xff_0000);
        let bars = [
            (Self::MEMORY, Bar::Memory32 { bytes: 0x1000 }),
            (Self::PORTS, Bar::Io { ports: 32 }),
            (Self::WIDE, Bar::Memory64 { bytes: 0x4000, is_prefetchable: true }),
        ];
        bars.into_iter().for_each(|(index, bar)| function.add_bar(index.into(), bar).expect("it fits"));
        function.add_msi(2).expect("it fits");
        let place = MsixPlace {
            bar: Self::MEMORY,
            pending_bar: Self::MEMORY,
            vectors: Self::VECTORS,
            table: Self::TABLE,
            pending: Self::PENDING,
        };
        function.add_msix(place).expect("it fits");
        Endpoint::new(slot, function, Self::default())
    }
}

impl Behind for Probe {
    fn kind(&self) -> u32 {
        Self::KIND
    }

    fn read(&mut self, at: At, _: &mut Function, _: &mut Context<'_>) -> u64 {
        match at.offset {
            0 => self.register.into(),
            4 => self.unsent.into(),
            _ => at.size.mask(),
        }
    }

    fn write(&mut self, at: At, value: u64, function: &mut Function, context: &mut Context<'_>) {
        match at.offset {
            0 => self.register = value as u32,
            4 => self.unsent += u32::from(!function.raise(value as u16, context.outputs)),
            8 => _ = context.memory.write(Gpa(value), &self.register.to_le_bytes()),
            _ => {}
        }
    }

    fn reset(&mut self) {
        *self = Self::default();
    }

    fn state_version(&self) -> u32 {
        2
    }

    fn state_bytes(&self) -> usize {
        8
    }

    fn save(&self, into: &mut [u8]) -> Result<usize, Full> {
        let state = [self.register.to_le_bytes(), self.unsent.to_le_bytes()];
        into.get_mut(..8).ok_or(Full)?.copy_from_slice(state.as_flattened());
        Ok(8)
    }

    /// Version 1 knew nothing of interrupts that were not sent.
    fn restore(&mut self, version: u32, from: &[u8]) -> Result<(), StateError> {
        let (words, _) = from.as_chunks::<4>();
        let words = words.iter().map(|word| u32::from_le_bytes(*word)).collect::<Vec<_>>();
        (self.register, self.unsent) = match (version, &words[..]) {
            (1, &[register]) => (register, 0),
            (2, &[register, unsent]) => (register, unsent),
            _ => return Err(StateError { field: "probe", reason: "another length" }),
        };
        Ok(())
    }
}

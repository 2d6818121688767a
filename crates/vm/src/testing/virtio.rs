// SPDX-License-Identifier: MIT OR Apache-2.0
//! A driver of a virtio function, which sets it up through its registers, and drives its queues in memory.

use std::vec::Vec;

use super::{FakeMemory, FakeWorld};
use crate::addr::{AccessSize, Gpa};
use crate::devices::InterruptMessage;
use crate::devices::device::{At, Device as _};
use crate::devices::pci::{ConfigAccess, Configured as _, Endpoint, Slot};
use crate::devices::virtio::{Fault, Io, Virtio, VirtioDevice, in_slot};
use crate::memory::GuestMemory as _;

/// Descriptors of each queue.
const SIZE: u16 = 8;
/// Memory of each queue: descriptors, rings, and a buffer of a page for each descriptor.
const QUEUE_BYTES: u64 = 0x1_0000;
const AVAILABLE: u64 = 0x1000;
const USED: u64 = 0x2000;
const BUFFERS: u64 = 0x4000;
const BUFFER_BYTES: u64 = 0x1000;
/// The vector of each MSI-X entry, beside its number.
const FIRST_VECTOR: u32 = 0x40;

/// A device, and the driver's side of it.
#[allow(missing_docs)]
pub struct VirtioDriver<D> {
    pub endpoint: Endpoint<Virtio<D>>,
    pub world: FakeWorld,
    queues: Vec<Ring>,
}

/// A chain of a driver's: its head, its descriptors, and the part that the device may write.
type Held = (u16, Vec<u16>, Vec<(u64, u32)>);

/// The driver's side of a queue.
#[derive(Clone, Debug, Default)]
struct Ring {
    free: Vec<u16>,
    held: Vec<Held>,
    available: u16,
    seen: u16,
}

#[allow(missing_docs)]
impl<D: VirtioDevice> VirtioDriver<D> {
    pub const COMMON: u64 = 0;
    pub const ISR: u64 = 0x800;
    pub const DEVICE: u64 = 0x1000;
    pub const NOTIFY: u64 = 0x2000;
    pub const TABLE: u64 = 0x3000;
    pub const SLOT: Slot = Slot(8);

    /// A device after power-on.
    pub fn new(device: D) -> Self {
        let queues = std::vec![Ring::default(); device.queue_sizes().len()];
        let bytes = QUEUE_BYTES as usize * (queues.len() + 1);
        let world = FakeWorld { memory: FakeMemory::new(bytes), ..FakeWorld::default() };
        let endpoint = in_slot(Self::SLOT, device).expect("it fits");
        Self { endpoint, world, queues }
    }

    /// The number of its queues.
    pub fn queues(&self) -> u16 {
        self.queues.len() as u16
    }

    pub fn read(&mut self, offset: u64, size: AccessSize) -> u64 {
        self.endpoint.read(At { range: 0, offset, size }, &mut self.world.context()) & size.mask()
    }

    pub fn write(&mut self, offset: u64, size: AccessSize, value: u64) {
        self.endpoint.write(At { range: 0, offset, size }, value & size.mask(), &mut self.world.context());
    }

    pub fn config(&mut self, register: u8, size: AccessSize) -> u64 {
        let access =
            ConfigAccess::enhanced(u64::from(Self::SLOT.0) << 12 | u64::from(register), size).expect("it is on bus 0");
        self.endpoint.read_config(access, &mut self.world.context())
    }

    pub fn set_config(&mut self, register: u8, size: AccessSize, value: u64) {
        let access =
            ConfigAccess::enhanced(u64::from(Self::SLOT.0) << 12 | u64::from(register), size).expect("it is on bus 0");
        self.endpoint.write_config(access, value, &mut self.world.context());
    }

    pub fn status(&mut self) -> u8 {
        self.read(20, AccessSize::Byte) as u8
    }

    /// The features that the device offers.
    pub fn offered(&mut self) -> u64 {
        let mut half = |select| {
            self.write(0, AccessSize::Dword, select);
            self.read(4, AccessSize::Dword)
        };
        half(0) | half(1) << 32
    }

    /// Accepts features; false if the device does not.
    pub fn negotiate(&mut self, features: u64) -> bool {
        self.write(20, AccessSize::Byte, 0);
        self.write(20, AccessSize::Byte, 3);
        for (select, half) in [(0, features & 0xffff_ffff), (1, features >> 32)] {
            self.write(8, AccessSize::Dword, select);
            self.write(12, AccessSize::Dword, half);
        }
        self.write(20, AccessSize::Byte, 11);
        self.status() & 8 != 0
    }

    /// Resets the device, and sets it up with these features, all queues, and a vector for each (section 3.1.1).
    pub fn start(&mut self, features: u64) {
        assert!(self.negotiate(features), "features {features:#x} are refused");
        self.enable_msix();
        (0..self.queues.len() as u16).for_each(|queue| self.set_up(queue));
        self.write(16, AccessSize::Word, self.queues.len() as u64);
        self.write(20, AccessSize::Byte, 15);
        assert_eq!(self.status(), 15);
    }

    pub fn set_up(&mut self, queue: u16) {
        let at = QUEUE_BYTES * u64::from(queue);
        self.queues[usize::from(queue)] = Ring { free: (0..SIZE).rev().collect(), ..Ring::default() };
        self.set_memory(at, &[0; USED as usize + 0x1000]);
        self.write(22, AccessSize::Word, queue.into());
        self.write(24, AccessSize::Word, SIZE.into());
        self.write(26, AccessSize::Word, queue.into());
        for (register, part) in [(32, 0), (40, AVAILABLE), (48, USED)] {
            self.write(register, AccessSize::Dword, at + part);
            self.write(register + 4, AccessSize::Dword, 0);
        }
        self.write(28, AccessSize::Word, 1);
    }

    fn enable_msix(&mut self) {
        for vector in 0..=self.queues.len() as u64 {
            let words = [0xfee0_0000, 0, u64::from(FIRST_VECTOR) + vector, 0];
            for (word, value) in (0..).zip(words) {
                self.write(Self::TABLE + 16 * vector + 4 * word, AccessSize::Dword, value);
            }
        }
        let mut capability = self.config(0x34, AccessSize::Byte) as u8;
        while self.config(capability, AccessSize::Byte) != 0x11 {
            capability = self.config(capability + 1, AccessSize::Byte) as u8;
        }
        self.set_config(capability + 2, AccessSize::Word, 1 << 15);
    }

    pub fn memory(&self, at: u64, bytes: usize) -> Vec<u8> {
        self.world.memory.bytes(Gpa(at), bytes)
    }

    pub fn set_memory(&mut self, at: u64, bytes: &[u8]) {
        self.world.memory.write(Gpa(at), bytes).expect("it is memory");
    }

    /// Makes a chain available: bytes for the device to read, and the size of the part that it may write.
    pub fn add(&mut self, queue: u16, readable: &[u8], writable: u32) -> Option<u16> {
        let base = QUEUE_BYTES * u64::from(queue);
        let ring = &mut self.queues[usize::from(queue)];
        let parts = [(readable.len() as u32, 0), (writable, 2)];
        let parts: Vec<_> = parts.into_iter().filter(|(bytes, _)| *bytes > 0).collect();
        if ring.free.len() < parts.len() || parts.is_empty() {
            return None;
        }
        let numbers = ring.free.split_off(ring.free.len() - parts.len());
        let (mut written, head) = (Vec::new(), numbers[0]);
        let mut pieces = Vec::new();
        for (index, (bytes, flags)) in parts.iter().enumerate() {
            let address = base + BUFFERS + BUFFER_BYTES * u64::from(numbers[index]);
            let next = numbers.get(index + 1).copied();
            let mut descriptor = address.to_le_bytes().to_vec();
            descriptor.extend(bytes.to_le_bytes());
            descriptor.extend((flags | u16::from(next.is_some())).to_le_bytes());
            descriptor.extend(next.unwrap_or(0).to_le_bytes());
            pieces.push((base + 16 * u64::from(numbers[index]), descriptor));
            match flags {
                0 => pieces.push((address, readable.to_vec())),
                _ => written.push((address, *bytes)),
            }
        }
        pieces.push((base + AVAILABLE + 4 + 2 * u64::from(ring.available % SIZE), head.to_le_bytes().to_vec()));
        ring.available = ring.available.wrapping_add(1);
        pieces.push((base + AVAILABLE + 2, ring.available.to_le_bytes().to_vec()));
        ring.held.push((head, numbers, written));
        pieces.iter().for_each(|(at, bytes)| self.set_memory(*at, bytes));
        Some(head)
    }

    pub fn notify(&mut self, queue: u16) {
        self.write(Self::NOTIFY + 4 * u64::from(queue), AccessSize::Word, queue.into());
    }

    /// Has the device act on its queues, as the host does; `None` if it has then failed.
    pub fn with<R>(&mut self, act: impl FnOnce(&mut D, &mut Io<'_>) -> Result<R, Fault>) -> Option<R> {
        let mut found = None;
        let world = &mut self.world;
        self.endpoint.work(&world.memory, &mut world.outputs, |device, io| {
            found = Some(act(device, io)?);
            Ok(())
        });
        found
    }

    pub fn poll(&mut self) {
        self.endpoint.poll(&mut self.world.context());
    }

    /// Takes a completed chain: its head, and the bytes that the device has written.
    pub fn collect(&mut self, queue: u16) -> Option<(u16, Vec<u8>)> {
        let base = QUEUE_BYTES * u64::from(queue);
        let index = self.memory(base + USED + 2, 2);
        let ring = &mut self.queues[usize::from(queue)];
        if index == ring.seen.to_le_bytes() {
            return None;
        }
        let at = base + USED + 4 + 8 * u64::from(ring.seen % SIZE);
        ring.seen = ring.seen.wrapping_add(1);
        let entry = self.world.memory.bytes(Gpa(at), 8);
        let (words, _) = entry.as_chunks::<4>();
        let (head, bytes) = (u32::from_le_bytes(words[0]) as u16, u32::from_le_bytes(words[1]));
        let found = ring.held.iter().position(|(own, ..)| *own == head).expect("the driver has made it available");
        let (_, numbers, written) = ring.held.swap_remove(found);
        ring.free.extend(numbers);
        let written: Vec<u8> =
            written.iter().flat_map(|(at, bytes)| self.world.memory.bytes(Gpa(*at), *bytes as usize)).collect();
        Some((head, written[..bytes as usize].to_vec()))
    }

    /// The numbers of the vectors that have interrupted the driver since the last call.
    pub fn interrupts(&mut self) -> Vec<u16> {
        let messages = self.world.outputs.take_messages();
        messages.map(|InterruptMessage { vector, .. }| u16::from(vector).wrapping_sub(FIRST_VECTOR as u16)).collect()
    }

    /// Its state in the hand-over.
    pub fn saved(&self) -> Vec<u8> {
        let mut bytes = std::vec![0; self.endpoint.state_bytes()];
        let used = self.endpoint.save(&mut bytes).expect("there is room");
        bytes.truncate(used);
        bytes
    }

    /// Replaces the device by one that goes on from its state, as another image does.
    ///
    /// # Errors
    /// The state is refused.
    pub fn hand_over(&mut self, device: D) -> Result<(), crate::devices::StateError> {
        self.hand_over_from(device, &self.saved())
    }

    /// The same from any state.
    ///
    /// # Errors
    /// The state is refused.
    pub fn hand_over_from(&mut self, device: D, state: &[u8]) -> Result<(), crate::devices::StateError> {
        let mut next = in_slot(Self::SLOT, device).expect("it fits");
        next.restore(self.endpoint.state_version(), state)?;
        self.endpoint = next;
        Ok(())
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A driver, for tests: memory, and a queue in it that is driven as the specification has it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

use crate::chain::walk::{INDIRECT, NEXT, WRITE};
use crate::memory::{Memory, Outside};
use crate::queue::notifications::is_passed;
use crate::rings::Addresses;
use crate::{Options, Queue, Segment};

/// Memory from address 0 on, with a hole of device registers, that counts how often each byte is read.
pub struct Ram {
    bytes: RefCell<Vec<u8>>,
    pub reads: RefCell<BTreeMap<u64, u32>>,
    pub hole: core::ops::Range<u64>,
}

impl Ram {
    pub fn new(bytes: usize) -> Self {
        Self { bytes: RefCell::new(vec![0; bytes]), reads: RefCell::default(), hole: 0..0 }
    }

    pub fn u16(&self, address: u64) -> u16 {
        let bytes = self.bytes.borrow();
        u16::from_le_bytes([bytes[address as usize], bytes[address as usize + 1]])
    }

    pub fn set(&self, address: u64, from: &[u8]) {
        self.bytes.borrow_mut()[address as usize..][..from.len()].copy_from_slice(from);
    }

    pub fn get(&self, address: u64, bytes: usize) -> Vec<u8> {
        self.bytes.borrow()[address as usize..][..bytes].to_vec()
    }

    fn place(&self, address: u64, bytes: usize) -> Result<usize, Outside> {
        let outside = Outside { address, bytes };
        let end = address.checked_add(bytes as u64).ok_or(outside)?;
        let is_memory = end <= self.bytes.borrow().len() as u64;
        let is_registers = address < self.hole.end && self.hole.start < end;
        if is_memory && !is_registers { Ok(address as usize) } else { Err(outside) }
    }
}

impl Memory for Ram {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Outside> {
        let place = self.place(address, into.len())?;
        into.copy_from_slice(&self.bytes.borrow()[place..][..into.len()]);
        let mut reads = self.reads.borrow_mut();
        (address..).zip(&*into).for_each(|(at, _)| *reads.entry(at).or_default() += 1);
        Ok(())
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Outside> {
        let place = self.place(address, from.len())?;
        self.bytes.borrow_mut()[place..][..from.len()].copy_from_slice(from);
        Ok(())
    }
}

pub const DESCRIPTORS: u64 = 0x1000;
pub const AVAILABLE: u64 = 0x3000;
pub const USED: u64 = 0x4000;
/// Indirect tables, a page for each head.
pub const TABLES: u64 = 0x10_0000;
pub const MEMORY_BYTES: usize = 0x40_0000;

/// A driver's side of one queue.
pub struct Driver {
    pub size: u16,
    pub options: Options,
    free: Vec<u16>,
    /// The descriptors of each chain, by its head.
    held: BTreeMap<u16, Vec<u16>>,
    available: u16,
    seen: u16,
    /// The index up to which it has decided about notifications.
    notified: u16,
}

impl Driver {
    pub fn new(size: u16, options: Options) -> Self {
        let (free, held) = ((0..size).rev().collect(), BTreeMap::new());
        Self { size, options, free, held, available: 0, seen: 0, notified: 0 }
    }

    pub fn addresses() -> Addresses {
        Addresses { descriptors: DESCRIPTORS, driver: AVAILABLE, device: USED }
    }

    pub fn queue(&self) -> Queue {
        Queue::new(Self::addresses(), self.size, self.options).expect("it is good")
    }

    /// Makes a chain available (2.7.13); its head, or `None` without room.
    pub fn add(&mut self, ram: &Ram, readable: &[Segment], writable: &[Segment], is_indirect: bool) -> Option<u16> {
        let all: Vec<_> = readable.iter().map(|s| (s, 0)).chain(writable.iter().map(|s| (s, WRITE))).collect();
        let needed = if is_indirect { 1 } else { all.len() };
        // A chain has a descriptor, in an indirect table, too (2.7.5.3).
        if all.is_empty() || self.free.len() < needed {
            return None;
        }
        let own: Vec<u16> = (0..needed).filter_map(|_| self.free.pop()).collect();
        let (table, numbers) = match is_indirect {
            true => (TABLES + 0x1000 * u64::from(own[0]), (0..all.len() as u16).collect()),
            false => (DESCRIPTORS, own.clone()),
        };
        for (index, (segment, flags)) in all.iter().enumerate() {
            let next = numbers.get(index + 1);
            let flags = flags | if next.is_some() { NEXT } else { 0 };
            put(ram, table, numbers[index], segment, flags, next.copied().unwrap_or(0x5555));
        }
        if is_indirect {
            let whole = Segment { address: table, bytes: 16 * all.len() as u32 };
            put(ram, DESCRIPTORS, own[0], &whole, INDIRECT, 0x5555);
        }
        let head = own[0];
        self.held.insert(head, own);
        self.offer(ram, head);
        Some(head)
    }

    /// Puts any head into the available ring.
    pub fn offer(&mut self, ram: &Ram, head: u16) {
        ram.set(AVAILABLE + 4 + 2 * u64::from(self.available % self.size), &head.to_le_bytes());
        self.available = self.available.wrapping_add(1);
        ram.set(AVAILABLE + 2, &self.available.to_le_bytes());
    }

    /// Returns whether the device is to be notified of chains added since the last call (2.7.13.4.1).
    pub fn notifies(&mut self, ram: &Ram) -> bool {
        let before = core::mem::replace(&mut self.notified, self.available);
        match self.options.has_event_index {
            true => is_passed(ram.u16(USED + 4 + 8 * u64::from(self.size)), before, self.available),
            false => ram.u16(USED) & 1 == 0 && before != self.available,
        }
    }

    /// Takes a completed chain: its head and the bytes written (2.7.14).
    pub fn collect(&mut self, ram: &Ram) -> Option<(u16, u32)> {
        if ram.u16(USED + 2) == self.seen {
            return None;
        }
        let entry = ram.get(USED + 4 + 8 * u64::from(self.seen % self.size), 8);
        let (words, _) = entry.as_chunks::<4>();
        let head = u32::from_le_bytes(words[0]) as u16;
        self.free.extend(self.held.remove(&head).expect("the driver has made it available"));
        self.seen = self.seen.wrapping_add(1);
        Some((head, u32::from_le_bytes(words[1])))
    }

    /// Asks for an interrupt at the next completed chain, or for none.
    pub fn want_interrupt(&self, ram: &Ram, wanted: bool) {
        let event = if wanted { self.seen } else { self.seen.wrapping_sub(1) };
        ram.set(AVAILABLE + 4 + 2 * u64::from(self.size), &event.to_le_bytes());
        ram.set(AVAILABLE, &u16::from(!wanted).to_le_bytes());
    }
}

/// Writes a descriptor.
pub fn put(ram: &Ram, table: u64, number: u16, segment: &Segment, flags: u16, next: u16) {
    let at = table + 16 * u64::from(number);
    ram.set(at, &segment.address.to_le_bytes());
    ram.set(at + 8, &segment.bytes.to_le_bytes());
    ram.set(at + 12, &flags.to_le_bytes());
    ram.set(at + 14, &next.to_le_bytes());
}

// SPDX-License-Identifier: MIT OR Apache-2.0
use std::vec::Vec;

use crate::*;

mod info;
mod linux;
mod memory_map;
mod multiboot2;
mod options;
mod physical;
mod pvh;
mod self_tests;

fn range(start: u64, end: u64) -> PhysRange {
    PhysRange::new(PhysAddr(start), PhysAddr(end)).unwrap()
}

/// Memory from `BASE` on; nothing else can be read.
struct TestMemory(Vec<u8>);

const BASE: u64 = 0x8000;

impl PhysicalMemory for TestMemory {
    fn bytes(&self, start: PhysAddr, bytes: usize) -> Option<&[u8]> {
        let offset = usize::try_from(start.0.checked_sub(BASE)?).ok()?;
        self.0.get(offset..offset.checked_add(bytes)?)
    }
}

impl TestMemory {
    fn put(&mut self, address: u64, bytes: &[u8]) {
        let offset = (address - BASE) as usize;
        self.0[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    fn put_u32(&mut self, address: u64, value: u32) {
        self.put(address, &value.to_le_bytes());
    }

    fn put_u64s(&mut self, address: u64, values: &[u64]) {
        values.iter().zip((address..).step_by(8)).for_each(|(value, address)| self.put(address, &value.to_le_bytes()));
    }
}

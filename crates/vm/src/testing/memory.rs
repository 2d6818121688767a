// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guest memory for tests.

use core::cell::RefCell;
use std::vec::Vec;

use crate::addr::{AccessSize, Gpa};
use crate::memory::{GuestMemory, OutOfRange};

/// Guest memory from address 0 up.
pub struct FakeMemory(RefCell<Vec<u8>>);

impl FakeMemory {
    /// Memory of `bytes` bytes, all zero.
    pub fn new(bytes: usize) -> Self {
        Self(RefCell::new(std::vec![0; bytes]))
    }

    /// A copy of `bytes` bytes at `gpa`; panics outside the memory.
    pub fn bytes(&self, gpa: Gpa, bytes: usize) -> Vec<u8> {
        self.0.borrow()[gpa.0 as usize..][..bytes].to_vec()
    }
}

impl GuestMemory for FakeMemory {
    fn read(&self, gpa: Gpa, into: &mut [u8]) -> Result<(), OutOfRange> {
        let memory = self.0.borrow();
        let range = range(gpa, into.len(), memory.len())?;
        into.copy_from_slice(&memory[range]);
        Ok(())
    }

    fn write(&self, gpa: Gpa, from: &[u8]) -> Result<(), OutOfRange> {
        let mut memory = self.0.borrow_mut();
        let range = range(gpa, from.len(), memory.len())?;
        memory[range].copy_from_slice(from);
        Ok(())
    }

    fn compare_exchange(&self, gpa: Gpa, size: AccessSize, old: u64, new: u64) -> Result<bool, OutOfRange> {
        let mut bytes = [0; 8];
        self.read(gpa, &mut bytes[..size.bytes()])?;
        let is_equal = u64::from_le_bytes(bytes) == old;
        if is_equal {
            self.write(gpa, &new.to_le_bytes()[..size.bytes()])?;
        }
        Ok(is_equal)
    }

    fn size_bytes(&self) -> u64 {
        self.0.borrow().len() as u64
    }
}

fn range(gpa: Gpa, bytes: usize, size: usize) -> Result<core::ops::Range<usize>, OutOfRange> {
    let refused = OutOfRange { gpa, bytes };
    let start = usize::try_from(gpa.0).map_err(|_| refused)?;
    let end = start.checked_add(bytes).filter(|&end| end <= size).ok_or(refused)?;
    Ok(start..end)
}

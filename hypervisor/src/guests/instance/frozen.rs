// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run of a guest as a reader sees it while it stands still.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use vm::addr::Gpa;
use vm::memory::GuestMemory;
use wire::{MemoryRange, VcpuRegisters};

use super::Instance;
use crate::guests::freeze::Frozen;

impl Frozen for Instance {
    fn layout(&self) -> Vec<MemoryRange> {
        self.machine.memory().layout().map(|(gpa, bytes)| MemoryRange { gpa, bytes }).collect()
    }

    fn read(&self, gpa: u64, into: &mut [u8]) -> Option<()> {
        self.machine.memory().read(Gpa(gpa), into).ok()
    }

    fn registers(&self, vcpu: u32) -> Option<VcpuRegisters> {
        self.registers.get(vcpu as usize)?.lock().clone()
    }

    fn saved(&self) -> Result<Option<Arc<[u8]>>, String> {
        Self::saved(self)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's physical address space, whichever extension walks it.

use paging::MapError;
use units::PhysRange;
use vm::cpu::cpuid::Speculation;
use vm::vcpu::EntryState;

use super::vcpu::{Vcpu, Vendor};
use crate::arch::svm::NestedSpace;
use crate::arch::unavailable::OutOfMemory;
#[cfg(feature = "intel")]
use crate::arch::vmx::EptSpace;

/// A guest's physical address space. Its vCPUs' control blocks point into it.
pub enum Space {
    /// AMD's nested page tables.
    Svm(NestedSpace),
    /// Intel's extended page tables.
    #[cfg(feature = "intel")]
    Vmx(EptSpace),
}

impl Space {
    /// A vCPU of the guest with this number, that will start in `entry`. The speculation controls `offered` are the
    /// guest's own.
    ///
    /// # Errors
    /// [`OutOfMemory`]: no frame is left for its control block.
    pub fn create_vcpu(&self, guest: u32, entry: &EntryState, offered: Speculation) -> Result<Vcpu, OutOfMemory> {
        match self {
            Self::Svm(space) => space.create_vcpu(guest, entry, offered).map(|vcpu| Vcpu::new(Vendor::Svm(vcpu))),
            // Its CPUID shows no speculation controls: `offered` is empty.
            #[cfg(feature = "intel")]
            Self::Vmx(space) => space.create_vcpu(guest, entry).map(|vcpu| Vcpu::new(Vendor::Vmx(vcpu))),
        }
    }

    /// Physical address of the tables' root.
    pub fn root(&self) -> u64 {
        each!(Space: self, vendors => vendors.tables().root().0)
    }

    /// Shows a range of a device's, uncached, where nothing is.
    ///
    /// # Errors
    /// [`MapError`]: refused whole.
    pub fn show_device(&self, gpa: u64, range: PhysRange) -> Result<(), MapError> {
        each!(Space: self, vendors => vendors.tables().show_device(gpa, range))
    }

    /// Shows memory of the guest. It may be shown already.
    ///
    /// # Errors
    /// [`MapError`]: there is no memory for tables.
    pub fn show_memory(&self, gpa: u64, range: PhysRange) -> Result<(), MapError> {
        each!(Space: self, vendors => vendors.tables().show_memory(gpa, range))
    }

    /// Hides what was shown. A vCPU may reach it until it has flushed its TLB
    /// ([`Vcpu::flush_tlb`]).
    ///
    /// # Errors
    /// [`MapError`]: refused whole.
    pub fn hide(&self, gpa: u64, bytes: u64) -> Result<(), MapError> {
        each!(Space: self, vendors => vendors.tables().hide(gpa, bytes))
    }

    /// How often something was hidden.
    pub fn changes(&self) -> u64 {
        each!(Space: self, vendors => vendors.tables().changes())
    }

    /// Since so many changes every vCPU has flushed its TLB: tables of those and earlier ones are given back.
    pub fn reclaim(&self, changes: u64) {
        each!(Space: self, vendors => vendors.tables().reclaim(changes));
    }
}

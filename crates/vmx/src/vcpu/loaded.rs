// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU on which a vCPU is loaded.

use crate::field::Vmcs;

/// A register of the guest that neither entries nor exits exchange. While a vCPU is loaded the CPU holds the guest's:
/// the host has no use for its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the manual's")]
pub enum Live {
    Cr2,
    Dr6,
    Star,
    Lstar,
    Cstar,
    Sfmask,
    KernelGsBase,
}

impl Live {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Cr2, Self::Dr6, Self::Star, Self::Lstar, Self::Cstar, Self::Sfmask, Self::KernelGsBase];
}

/// A CPU with a VMCS that is current on it, and the virtual-APIC page that this one points to.
pub trait Loaded: Vmcs + 'static {
    /// Reads a register that the CPU holds.
    fn live(&self, register: Live) -> u64;

    /// Writes it.
    fn set_live(&mut self, register: Live, value: u64);

    /// The byte of the task priority in the virtual-APIC page (offset 80H; section 30.1.1), loaded or not.
    fn task_priority_byte(&self) -> u8;

    /// Writes that byte.
    fn set_task_priority_byte(&mut self, value: u8);
}

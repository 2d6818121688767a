// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interface of a virtualization extension to the rest of the hypervisor. Nothing above this trait knows which one
//! it is.

use core::fmt;
use core::ops::DerefMut;

use handover::state::Extended;
use vm::cpuid::Speculation;
use vm::devices::StateError;
use vm::exit::Exit;
use vm::machine::Full;
use vm::vcpu::{EntryState, VcpuState};

use super::guest_memory::GuestRam;

/// A CPU's virtualization extension.
pub trait Virt: Copy + Send + Sync + 'static {
    /// The part of a vCPU that handlers of exits see.
    type State: VcpuState;
    /// One vCPU.
    type Vcpu: DerefMut<Target = Self::State> + Send;
    /// A guest's physical address space.
    type Space: Send + Sync;

    /// Its name in reports: `svm`, `vmx`.
    fn name(&self) -> &'static str;

    /// Returns how many ASIDs the CPU has: guests beside each other on one CPU at most.
    fn tags(&self) -> u32;

    /// Readies the calling CPU: once, and again when it has been away.
    fn enable(&self) -> Result<(), Unavailable>;

    /// The calling CPU holds no guest any more and leaves the host: disables the extension.
    fn disable(&self);

    /// An address space that shows `memory` and nothing else.
    fn create_space(&self, memory: &GuestRam) -> Result<Self::Space, OutOfMemory>;

    /// A vCPU of the guest with this number, in `space`, that will start in `entry`.
    /// The registers `offered` are the guest's.
    fn create_vcpu(
        &self,
        guest: u32,
        space: &Self::Space,
        entry: &EntryState,
        offered: Speculation,
    ) -> Result<Self::Vcpu, OutOfMemory>;

    /// A vCPU comes to the calling CPU, where no other has this tag (from 1 to [`Self::tags`]):
    /// nothing that was translated under the tag counts any more.
    fn arrive(&self, vcpu: &mut Self::Vcpu, tag: u32);

    /// Switches a vCPU in on the calling CPU: the registers that stay loaded across exits.
    fn load(&self, vcpu: &mut Self::Vcpu);

    /// Switches it out again; nothing of the guest is left in the CPU.
    fn unload(&self, vcpu: &mut Self::Vcpu);

    /// Chooses the way in and out of a loaded vCPU again: whether its time is counted has changed, or its
    /// SPEC_CTRL.
    fn choose_switch(&self, vcpu: &mut Self::Vcpu);

    /// Makes what a CPU that does not run yet needs to be readied.
    fn prepare(&self, index: u32) -> Result<(), Unavailable>;

    /// Physical address of an address space's tables.
    fn space_root(space: &Self::Space) -> u64;

    /// Saves what stays loaded across exits of a vCPU that is not loaded. Returns the bytes of `tail` in
    /// use.
    ///
    /// # Errors
    /// `tail` is too short.
    fn save_extended(&self, vcpu: &Self::Vcpu, into: &mut Extended, tail: &mut [u8]) -> Result<usize, Full>;

    /// Takes that over, into a vCPU that is not loaded.
    ///
    /// # Errors
    /// The CPU cannot load it; then nothing has changed.
    fn restore_extended(&self, vcpu: &mut Self::Vcpu, from: &Extended, tail: &[u8]) -> Result<(), StateError>;

    /// Runs a loaded vCPU until it leaves the guest. Interrupts are masked before and after.
    fn run(&self, vcpu: &mut Self::Vcpu) -> Exit;
}

/// The reason for which guests cannot run on a CPU; the host itself can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// No extension that this hypervisor knows.
    NoExtension,
    /// The firmware has switched it off and locked it.
    LockedByFirmware,
    /// No nested paging.
    NoNestedPaging,
    /// Memory for the CPU's own save area ran out.
    OutOfMemory,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoExtension => {
                "this CPU has no AMD SVM, so no guest can run: use one that has it (in QEMU: -cpu max)"
            }
            Self::LockedByFirmware => "AMD SVM is disabled by the firmware: enable it in the firmware's set-up",
            Self::NoNestedPaging => {
                "this CPU's SVM has no nested paging, so no guest can run: use one that has it (in QEMU: -cpu \
                 max)"
            }
            Self::OutOfMemory => "no memory left for this CPU's save area: give the host more memory",
        })
    }
}

/// No host memory left for tables or control blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

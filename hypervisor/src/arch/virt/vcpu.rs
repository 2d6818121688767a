// SPDX-License-Identifier: MIT OR Apache-2.0
//! One vCPU, whichever extension runs it: what is done to it as a whole. [`super::state`] has its registers.

use handover::state::Extended;
use vm::devices::StateError;
use vm::exit::Exit;
use vm::machine::Full;
#[cfg(feature = "intel")]
use vm::vcpu::VcpuState;
use vm::vcpu::{Misplaced, Residence};

use crate::arch::percpu::PerCpu;
use crate::arch::svm::SvmVcpu;
#[cfg(feature = "intel")]
use crate::arch::vmx::VmxVcpu;

/// One vCPU.
pub struct Vcpu {
    pub(super) vendor: Vendor,
    residence: Residence,
}

/// The vendor's part.
pub(super) enum Vendor {
    /// AMD's.
    Svm(SvmVcpu),
    /// Intel's.
    #[cfg(feature = "intel")]
    Vmx(VmxVcpu),
}

/// A vCPU's registers while its exits are answered and its entries prepared: one choice for all accesses of an answer.
pub enum Registers<'a> {
    /// Of the type for which the code that answers is compiled with every access inlined: that of AMD's vCPUs.
    Inlined(&'a mut <SvmVcpu as core::ops::Deref>::Target),
    /// Of any type, by calls.
    #[cfg(feature = "intel")]
    Called(&'a mut dyn VcpuState),
}

impl Vcpu {
    /// Its registers.
    #[inline]
    pub fn registers(&mut self) -> Registers<'_> {
        match &mut self.vendor {
            Vendor::Svm(vcpu) => Registers::Inlined(vcpu),
            #[cfg(feature = "intel")]
            Vendor::Vmx(vcpu) => Registers::Called(&mut **vcpu),
        }
    }

    /// On no CPU.
    pub(super) fn new(vendor: Vendor) -> Self {
        Self { vendor, residence: Residence::nowhere() }
    }

    /// Puts it on the calling CPU, where no other has this tag (from 1 to [`super::Virt::tags`]): nothing that was
    /// translated under the tag counts any more. May come before [`super::Virt::enable`], as it does in an update: what
    /// needs the extension waits for [`Self::load`].
    pub fn arrive(&mut self, tag: u32) {
        report("arrives", self.residence.arrive(PerCpu::current().index));
        each!(Vendor: &mut self.vendor, vendors => vendors.arrive(tag));
    }

    /// Takes it off the calling CPU, not loaded: it may arrive on any other, its memory may be given back, and another
    /// image may drive the CPU. Once for each arrival.
    pub fn depart(&mut self) {
        report("departs", self.residence.depart(PerCpu::current().index));
        each!(Vendor: &mut self.vendor, vendors => vendors.depart());
    }

    /// Nothing that was translated for it counts any more, from its next entry on.
    pub fn flush_tlb(&mut self) {
        each!(Vendor: &mut self.vendor, vendors => vendors.flush_tlb());
    }

    /// Returns true if it is on no CPU.
    pub fn is_nowhere(&self) -> bool {
        self.residence.cpu().is_none()
    }

    /// Loads the registers that stay in the CPU across exits.
    pub fn load(&mut self) {
        each!(Vendor: &mut self.vendor, vendors => vendors.load());
    }

    /// Takes them out again; nothing of the guest is left in the CPU's registers.
    pub fn unload(&mut self) {
        each!(Vendor: &mut self.vendor, vendors => vendors.unload());
    }

    /// Chooses the way in and out of the guest again: whether its time is counted has changed, or its SPEC_CTRL.
    pub fn choose_switch(&mut self) {
        each!(Vendor: &mut self.vendor, vendors => vendors.choose_switch());
    }

    /// Runs it, loaded, until it leaves the guest. Interrupts are masked before and after.
    #[inline]
    pub fn run(&mut self) -> Exit {
        each!(Vendor: &mut self.vendor, vendors => vendors.run())
    }

    /// Saves the registers that stay in the CPU across exits, while it is not loaded. Returns the bytes of `tail` in
    /// use.
    ///
    /// # Errors
    /// `tail` is too short.
    pub fn save_extended(&self, into: &mut Extended, tail: &mut [u8]) -> Result<usize, Full> {
        each!(Vendor: &self.vendor, vendors => vendors.save_extended(into, tail))
    }

    /// Restores them, while it is not loaded.
    ///
    /// # Errors
    /// The CPU cannot load them; then nothing has changed.
    pub fn restore_extended(&mut self, from: &Extended, tail: &[u8]) -> Result<(), StateError> {
        each!(Vendor: &mut self.vendor, vendors => vendors.restore_extended(from, tail))
    }
}

impl Drop for Vcpu {
    fn drop(&mut self) {
        if let Some(cpu) = self.residence.cpu() {
            log::error!("a vCPU ends on cpu{cpu}, from which it has not departed");
        }
    }
}

/// The guests' layer has lost count: with VMX the CPU could write to memory that is no control block any more.
fn report(act: &str, done: Result<(), Misplaced>) {
    if let Err(misplaced) = done {
        log::error!("a vCPU {act} on cpu{}, but {misplaced}", PerCpu::current().index);
    }
}

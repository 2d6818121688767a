// SPDX-License-Identifier: MIT OR Apache-2.0
//! One vCPU, whichever extension runs it: operations on the whole vCPU. It derefs to its registers.

use core::ops::{Deref, DerefMut};

use handover::state::Extended;
use vm::devices::StateError;
use vm::exit::Exit;
use vm::machine::Full;
use vm::vcpu::{Misplaced, Residence, VcpuState};

use crate::arch::percpu::PerCpu;
use crate::arch::svm::SvmVcpu;
#[cfg(feature = "intel")]
use crate::arch::vmx::VmxVcpu;

/// One vCPU.
pub struct Vcpu {
    vendor: Vendor,
    residence: Residence,
}

/// The vendor's part.
#[cfg_attr(
    feature = "intel",
    expect(clippy::large_enum_variant, reason = "few, and read at each exit: no box between")
)]
pub(super) enum Vendor {
    /// AMD's.
    Svm(SvmVcpu),
    /// Intel's.
    #[cfg(feature = "intel")]
    Vmx(VmxVcpu),
}

/// A way to enter vCPUs and to answer their exits: the choice is made once for a run of a vCPU, not at each access.
pub trait Access {
    /// The type of their registers.
    type State: VcpuState + ?Sized;

    /// The registers of a vCPU for which this way was chosen.
    fn registers(vcpu: &mut Vcpu) -> &mut Self::State;

    /// Runs it, loaded, until it leaves the guest. Interrupts are masked before and after.
    fn run(vcpu: &mut Vcpu) -> Exit;
}

/// For AMD's vCPUs: the code that answers is compiled for them, every access inlined.
pub enum Inlined {}

/// For all others: by calls.
pub enum Called {}

impl Access for Inlined {
    type State = <SvmVcpu as Deref>::Target;

    #[inline(always)]
    fn registers(vcpu: &mut Vcpu) -> &mut Self::State {
        vcpu.inlined()
    }

    #[inline(always)]
    fn run(vcpu: &mut Vcpu) -> Exit {
        vcpu.inlined().run()
    }
}

impl Access for Called {
    type State = dyn VcpuState;

    fn registers(vcpu: &mut Vcpu) -> &mut Self::State {
        &mut **vcpu
    }

    fn run(vcpu: &mut Vcpu) -> Exit {
        match &mut vcpu.vendor {
            #[cfg(feature = "intel")]
            Vendor::Vmx(vcpu) => vcpu.run(),
            Vendor::Svm(_) => unreachable!("this way was chosen for a vCPU of another type"),
        }
    }
}

impl Vcpu {
    /// Returns whether [`Inlined`] is the way for it, and not [`Called`].
    pub fn is_inlined(&self) -> bool {
        matches!(self.vendor, Vendor::Svm(_))
    }

    #[inline(always)]
    fn inlined(&mut self) -> &mut SvmVcpu {
        match &mut self.vendor {
            Vendor::Svm(vcpu) => vcpu,
            #[cfg(feature = "intel")]
            Vendor::Vmx(_) => unreachable!("this way was chosen for a vCPU of another type"),
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

    /// Flushes all translations for it, at its next entry.
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

/// Its registers, by calls: those that answer exits have [`Vcpu::registers`].
impl Deref for Vcpu {
    type Target = dyn VcpuState;

    fn deref(&self) -> &Self::Target {
        match &self.vendor {
            Vendor::Svm(vcpu) => &**vcpu,
            #[cfg(feature = "intel")]
            Vendor::Vmx(vcpu) => &**vcpu,
        }
    }
}

impl DerefMut for Vcpu {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match &mut self.vendor {
            Vendor::Svm(vcpu) => &mut **vcpu,
            #[cfg(feature = "intel")]
            Vendor::Vmx(vcpu) => &mut **vcpu,
        }
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The virtualization extension that runs guests: the seam between vendors. The code above imports this module, and
//! names no vendor; the code below ([`super::svm`], [`super::vmx`]) is imported by this module only.
//!
//! [`Virt`], [`Space`] and [`Vcpu`] are enums with a variant for each vendor, chosen once at boot, so that all code
//! above is compiled once. Another vendor is a variant of each, an arm of `each!` and of [`Virt::detect`]: its module
//! has types with the methods of these three.
//!
//! A variant costs a compare and a predicted branch at each call. A handler of an exit reads and writes registers some
//! thirty times: there the choice is made once for a run ([`Access`]), and code that is seldom executed exists once,
//! for `dyn VcpuState`. Rejected: the choice at each register (CPUID's exit took 40 % more instructions), a trait as a
//! type parameter of everything above (that code once for each vendor).

/// Does the same with whichever vendor's type the enum holds.
macro_rules! each {
    ($kind:ident: $this:expr, $vendors:ident => $act:expr) => {
        match $this {
            $kind::Svm($vendors) => $act,
            #[cfg(feature = "intel")]
            $kind::Vmx($vendors) => $act,
        }
    };
}

mod space;
mod vcpu;

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use wire::Virtualization;

use super::guest_memory::GuestRam;
use super::svm::{self, Svm};
use super::trap::TrapFrame;
#[cfg(feature = "intel")]
use super::vmx::{self, Vmx};
use super::{counters, speculation};

pub use super::unavailable::{OutOfMemory, Unavailable};
pub use space::Space;
pub use vcpu::{Access, Called, Inlined, Vcpu};

/// A CPU's virtualization extension.
#[derive(Clone, Copy)]
pub enum Virt {
    /// AMD's.
    Svm(Svm),
    /// Intel's.
    #[cfg(feature = "intel")]
    Vmx(Vmx),
}

/// The performance counters that a CPU has for guests.
pub struct Counters {
    /// Their name in reports.
    pub name: &'static str,
    /// The number of them.
    pub counters: u8,
}

impl Virt {
    /// The calling CPU's extension.
    ///
    /// # Errors
    /// [`Unavailable`]: there is none, or it cannot be used.
    pub fn detect() -> Result<Self, Unavailable> {
        match Svm::detect() {
            #[cfg(feature = "intel")]
            Err(Unavailable::NoExtension) => Vmx::detect().map(Self::Vmx),
            found => found.map(Self::Svm),
        }
    }

    /// Returns its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Svm(_) => "svm",
            #[cfg(feature = "intel")]
            Self::Vmx(_) => "vmx",
        }
    }

    /// Returns its kind for the control channel.
    pub fn kind(self) -> Virtualization {
        match self {
            Self::Svm(_) => Virtualization::Svm,
            #[cfg(feature = "intel")]
            Self::Vmx(_) => Virtualization::Vmx,
        }
    }

    /// Optional features that the CPU has, by the manual's names.
    pub fn feature_names(self) -> Vec<&'static str> {
        each!(Virt: self, vendors => vendors.feature_names())
    }

    /// The number of guests' address spaces that a CPU keeps apart in its TLB, each by its tag (ASID, VPID): so many
    /// vCPUs at most can be on one CPU.
    pub fn tags(self) -> u32 {
        each!(Virt: self, vendors => vendors.tags())
    }

    /// Makes what the CPU of this number needs to run guests, before it does.
    ///
    /// # Errors
    /// [`Unavailable`]: there is no memory left for it.
    pub fn prepare(self, index: u32) -> Result<(), Unavailable> {
        each!(Virt: self, vendors => vendors.prepare(index))
    }

    /// Enables the extension on the calling CPU, and what guests need beside it. Once, and again when the CPU has been
    /// away.
    ///
    /// # Errors
    /// [`Unavailable`]: [`Self::prepare`] has not run for this CPU, and there is no memory left.
    pub fn enable(self) -> Result<(), Unavailable> {
        each!(Virt: self, vendors => vendors.enable())?;
        counters::prepare_this_cpu();
        speculation::prepare_this_cpu();
        Ok(())
    }

    /// Disables the extension on the calling CPU, from which every vCPU has departed.
    pub fn disable(self) {
        counters::leave_this_cpu();
        each!(Virt: self, vendors => vendors.disable());
    }

    /// Lends the calling CPU, from which every vCPU has departed, to another image for a while.
    pub fn lend(self) {
        each!(Virt: self, vendors => vendors.lend());
    }

    /// Reclaims the calling CPU after [`Self::lend`], and restores its state from before.
    ///
    /// # Errors
    /// [`Unavailable`]: the CPU refuses what it took before.
    pub fn reclaim(self) -> Result<(), Unavailable> {
        each!(Virt: self, vendors => vendors.reclaim())
    }

    /// Finds the counters of the calling CPU that guests' events can be counted with.
    ///
    /// # Errors
    /// The reason why they cannot be used.
    pub fn detect_counters(self) -> Result<Counters, String> {
        let found = each!(Virt: self, vendors => vendors.while_enabled(counters::detect));
        let found = found.map_err(|unusable| unusable.to_string())?;
        Ok(Counters { name: found.name(), counters: found.counters })
    }

    /// An address space that shows `memory` and nothing else.
    ///
    /// # Errors
    /// [`OutOfMemory`]: no frame is left for its tables.
    pub fn create_space(self, memory: &GuestRam) -> Result<Space, OutOfMemory> {
        match self {
            Self::Svm(svm) => svm.create_space(memory).map(Space::Svm),
            #[cfg(feature = "intel")]
            Self::Vmx(vmx) => vmx.create_space(memory).map(Space::Vmx),
        }
    }
}

/// The guest that was running when an NMI interrupted the calling CPU; `None` if the host was.
pub fn interrupted_guest(frame: &TrapFrame) -> Option<u32> {
    let guest = svm::interrupted_guest(frame);
    #[cfg(feature = "intel")]
    let guest = guest.or_else(|| vmx::interrupted_guest(frame));
    guest
}

/// Blocks even NMIs on the calling CPU, for good: for a self-test. Does nothing where the extension cannot.
#[cfg(feature = "faults")]
pub fn block_all_interrupts() {
    svm::close_global_interrupts();
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! AMD SVM on the machine (AMD APM vol. 2, chapter 15). The `svm` crate decides what a control block holds; here are
//! the instructions, and the memory that the CPU reads. [`super::virt`] alone imports this module.
//!
//! ```text
//! Svm ──► NestedSpace ──► SvmVcpu ──► switch.S
//!              │              ├─ VmcbPage: its control block
//!              └─ maps        ├─ ExtendedState: registers that stay loaded across exits
//!                             └─ host_state: the CPU's own areas
//! ```

mod cpu_traits;
mod host_state;
mod maps;
mod page;
mod space;
mod switch;
mod vcpu;

use alloc::vec::Vec;
use core::arch::asm;

use svm::Features;

use super::cpu;
use super::guest_memory::GuestRam;
use super::percpu::PerCpu;
use super::unavailable::{OutOfMemory, Unavailable};

use cpu_traits::CpuTraits;

pub use space::NestedSpace;
pub use switch::interrupted_guest;
pub use vcpu::SvmVcpu;

const MSR_EFER: u32 = 0xc000_0080;
const EFER_SVME: u64 = 1 << 12;
const MSR_VM_CR: u32 = 0xc001_0114;
const VM_CR_SVM_DISABLED: u64 = 1 << 4;
const MSR_HOST_SAVE: u32 = 0xc001_0117;

/// AMD SVM.
#[derive(Clone, Copy)]
pub struct Svm {
    traits: CpuTraits,
}

impl Svm {
    /// SVM, if this CPU has it with all that is needed.
    pub fn detect() -> Result<Self, Unavailable> {
        if cpu::cpuid(0x8000_0000, 0).eax < 0x8000_000a || cpu::cpuid(0x8000_0001, 0).ecx & (1 << 2) == 0 {
            return Err(Unavailable::NoExtension);
        }
        // SAFETY: the register exists with SVM (section 15.30.1); reading it has no effect.
        if unsafe { cpu::read_msr(MSR_VM_CR) } & VM_CR_SVM_DISABLED != 0 {
            return Err(Unavailable::LockedByFirmware);
        }
        let leaf = cpu::cpuid(0x8000_000a, 0);
        let features = Features::from_cpuid(leaf.ebx, leaf.edx);
        let this = Self { traits: CpuTraits::with(features) };
        if features.nested_paging { Ok(this) } else { Err(Unavailable::NoNestedPaging) }
    }

    pub fn feature_names(&self) -> Vec<&'static str> {
        let Features { next_rip, decode_assists, flush_by_asid, clean_bits, pause_filter, .. } = self.traits.features;
        let named = [
            (true, "nested-paging"),
            (next_rip, "nrips"),
            (decode_assists, "decode-assists"),
            (flush_by_asid, "flush-by-asid"),
            (clean_bits, "vmcb-clean"),
            (pause_filter, "pause-filter"),
        ];
        named.into_iter().filter(|(has, _)| *has).map(|(_, name)| name).collect()
    }

    pub fn tags(&self) -> u32 {
        self.traits.features.asids
    }

    pub fn prepare(&self, index: u32) -> Result<(), Unavailable> {
        host_state::of(index)?;
        maps::prepare().map_err(|OutOfMemory| Unavailable::OutOfMemory)
    }

    pub fn enable(&self) -> Result<(), Unavailable> {
        let (save_area, host_vmcb) = host_state::of(PerCpu::current().index)?;
        // SAFETY: `detect` found SVM, not disabled; the save area is a whole frame that belongs to this CPU.
        unsafe {
            cpu::write_msr(MSR_EFER, cpu::read_msr(MSR_EFER) | EFER_SVME);
            cpu::write_msr(MSR_HOST_SAVE, save_area);
        }
        // SAFETY: the frame belongs to this CPU; VMSAVE only writes to it. GS, TR and the rest are final by now.
        unsafe { asm!("vmsave rax", in("rax") host_vmcb, options(nostack, preserves_flags)) };
        Ok(())
    }

    pub fn disable(&self) {
        // SAFETY: `enable` set the bit on this CPU, which holds no guest any more; the global interrupt flag is set
        // outside of the world switch, without which clearing the bit is undefined (section 15.4).
        unsafe { cpu::write_msr(MSR_EFER, cpu::read_msr(MSR_EFER) & !EFER_SVME) };
    }

    /// SVM may stay enabled while another image has the CPU.
    pub fn lend(&self) {}

    pub fn reclaim(&self) -> Result<(), Unavailable> {
        Ok(())
    }

    /// Does something with SVM enabled on the calling CPU. The counters' guest-only bits mean nothing without it.
    pub fn while_enabled<T>(&self, act: impl FnOnce() -> T) -> T {
        // SAFETY: the register exists on every x86-64 CPU; reading it has no effect.
        let before = unsafe { cpu::read_msr(MSR_EFER) };
        // SAFETY: `detect` found SVM, not disabled; without VMRUN the bit changes nothing for the code that runs.
        unsafe { cpu::write_msr(MSR_EFER, before | EFER_SVME) };
        let result = act();
        // SAFETY: as it was; the global interrupt flag is set.
        unsafe { cpu::write_msr(MSR_EFER, before) };
        result
    }

    pub fn create_space(&self, memory: &GuestRam) -> Result<NestedSpace, OutOfMemory> {
        NestedSpace::new(memory, self.traits)
    }
}

/// Closes the global interrupt flag for good. Nothing where SVM is disabled.
#[cfg(feature = "faults")]
pub fn close_global_interrupts() {
    // SAFETY: the register exists on every x86-64 CPU; reading it has no effect.
    if unsafe { cpu::read_msr(MSR_EFER) } & EFER_SVME != 0 {
        // SAFETY: SVM is enabled, so the instruction exists; the caller wants no interrupt on this CPU any more.
        unsafe { asm!("clgi", options(nostack)) };
    }
}

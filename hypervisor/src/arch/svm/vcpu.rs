// SPDX-License-Identifier: MIT OR Apache-2.0
//! One vCPU: its control block, and the registers that stay loaded across exits.

use core::ops::{Deref, DerefMut};

use handover::state::Extended;
use mitigations::switch::{Variant, in_guest};
use svm::Vcpu;
use svm::vcpu::{Owner, SpecCtrl, Tables};
use units::PhysAddr;
use vm::cpu::cpuid::Speculation;
use vm::devices::StateError;
use vm::exit::Exit;
use vm::machine::Full;
use vm::vcpu::{EntryState, VcpuState};

use super::cpu_traits::CpuTraits;
use super::page::VmcbPage;
use super::switch::{self, WorldSwitch};
use super::{host_state, maps};
use crate::arch::extended::ExtendedState;
use crate::arch::unavailable::OutOfMemory;
use crate::arch::{cpu, speculation};

/// One vCPU.
pub struct SvmVcpu {
    state: Vcpu<VmcbPage>,
    extended: ExtendedState,
    traits: CpuTraits,
    /// The world switch of this vCPU: a choice that is made once costs no exit anything.
    switch: WorldSwitch,
}

impl Deref for SvmVcpu {
    type Target = Vcpu<VmcbPage>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.state
    }
}

impl DerefMut for SvmVcpu {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.state
    }
}

impl SvmVcpu {
    /// A vCPU of the guest with this number, with nested page tables at `root`, that will start in `entry`.
    pub fn new(
        traits: CpuTraits,
        root: PhysAddr,
        guest: u32,
        entry: &EntryState,
        offered: Speculation,
    ) -> Result<Self, OutOfMemory> {
        let maps = maps::get().ok_or(OutOfMemory)?;
        let tables = Tables { io_map: maps.io.0, msr_map: maps.msr(offered).0, nested_root: root.0 };
        let page = VmcbPage::allocate().ok_or(OutOfMemory)?;
        let owner = Owner { vmcb: page.physical(), guest };
        let mut state = Vcpu::new(page, traits.features, 1, tables, entry);
        state.switched_mut().owner = owner;
        let mut vcpu = Self { state, extended: ExtendedState::after_reset(), traits, switch: switch::plain() };
        vcpu.choose_switch();
        Ok(vcpu)
    }

    /// Nothing is left to do: the CPU may have cached parts of the control block, but reads it again where the clean
    /// bits are clear (section 15.15), and the next arrival clears them, as it flushes what is tagged with the ASID.
    pub fn depart(&mut self) {}

    pub fn flush_tlb(&mut self) {
        self.state.flush_tlb();
    }

    pub fn load(&mut self) {
        speculation::follow_guest(self.state.switched_mut().owner.guest);
        self.extended.load();
        self.choose_switch();
    }

    pub fn unload(&mut self) {
        self.state.set_xcr0(self.extended.xcr0());
        self.extended.save();
    }

    pub fn choose_switch(&mut self) {
        let (actions, guest) = (speculation::actions(), self.state.spec_ctrl());
        let variant = Variant::choose(actions, guest, self.traits.features.virtual_spec_ctrl, self.state.counts_time());
        self.state.switched_mut().spec_ctrl =
            SpecCtrl { in_guest: in_guest(actions, guest), in_host: actions.host_spec_ctrl() };
        self.switch = switch::of(variant);
    }

    pub fn save_extended(&self, into: &mut Extended, tail: &mut [u8]) -> Result<usize, Full> {
        self.extended.save_into(into, tail)
    }

    pub fn restore_extended(&mut self, from: &Extended, tail: &[u8]) -> Result<(), StateError> {
        let xcr0 = self.state.xcr0();
        self.extended.restore_from(from, tail, xcr0)
    }

    #[inline(always)]
    pub fn run(&mut self) -> Exit {
        self.extended.follow(self.state.xcr0());
        let guest_vmcb = self.state.holder().physical();
        // SAFETY: both blocks are whole frames, the guest's prepared by the `svm` crate with tables that show only the
        // guest's own memory; this CPU has been enabled; the assembly keeps every register that Rust expects to be kept
        // (the guest's x87, SSE and AVX registers stay loaded: the hypervisor is built without them).
        unsafe { (self.switch)(self.state.switched_mut(), guest_vmcb, host_state::own_vmcb()) };
        if self.traits.may_lose_requests {
            cpu::poll_pending_interrupts();
        }
        let exit = self.state.after_exit();
        if matches!(exit, Exit::Cpuid) {
            // CPUID's results depend on it.
            self.state.set_xcr0(self.extended.xcr0());
        }
        exit
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! One vCPU: its VMCS, and the registers that stay loaded across exits.

use core::arch::asm;
use core::ops::{Deref, DerefMut};

use handover::state::Extended;
use units::PhysAddr;
use vm::devices::StateError;
use vm::exit::Exit;
use vm::machine::Full;
use vm::vcpu::{EntryState, VcpuState};
use vmx::ept::Eptp;
use vmx::vcpu::{Left, Tables, Way};
use vmx::{Control, Settings, Vcpu};

use super::page::VmcsPages;
use super::switch::{self, WorldSwitch};
use super::{bitmap, host};
use crate::arch::extended::ExtendedState;
use crate::arch::speculation;
use crate::arch::unavailable::OutOfMemory;

/// INVEPT and INVVPID of one context (section 31.3).
const SINGLE_CONTEXT: u64 = 1;

/// One vCPU.
pub struct VmxVcpu {
    state: Vcpu<VmcsPages>,
    extended: ExtendedState,
    settings: &'static Settings,
    ept: Eptp,
    /// The VMCS is active on the CPU to which the vCPU belongs.
    is_active: bool,
    /// The VMCS was launched since it was cleared.
    is_launched: bool,
    /// The world switch of this vCPU.
    switch: WorldSwitch,
}

impl Deref for VmxVcpu {
    type Target = Vcpu<VmcsPages>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.state
    }
}

impl DerefMut for VmxVcpu {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.state
    }
}

impl VmxVcpu {
    /// A vCPU of the guest with this number, with extended page tables at `root`, that will start in `entry`.
    pub fn new(
        settings: &'static Settings,
        root: PhysAddr,
        guest: u32,
        entry: &EntryState,
    ) -> Result<Self, OutOfMemory> {
        let bitmap = bitmap::get().ok_or(OutOfMemory)?;
        let pages = VmcsPages::allocate(settings).ok_or(OutOfMemory)?;
        let tables = Tables { ept_root: root.0, msr_bitmap: bitmap.0, virtual_apic: pages.virtual_apic() };
        Ok(Self {
            state: Vcpu::new(pages, settings, tables, guest, entry),
            extended: ExtendedState::after_reset(),
            settings,
            ept: Eptp::of_tables(root),
            is_active: false,
            is_launched: false,
            switch: switch::vmx_switch,
        })
    }

    /// The CPU keeps nothing of the VMCS any more. One that was not loaded since it arrived is not in the CPU, which
    /// may not even be in VMX operation.
    pub fn depart(&mut self) {
        if core::mem::take(&mut self.is_active) {
            self.state.cpu_mut().clear();
            self.is_launched = false;
        }
    }

    #[inline(never)]
    pub fn load(&mut self) {
        speculation::follow_guest(self.state.switched_mut().guest);
        self.extended.load();
        let pages = self.state.cpu_mut();
        if !self.is_active {
            pages.clear();
        }
        pages.make_current();
        self.is_active = true;
        self.state.load(host::fields);
        self.choose_switch();
    }

    #[inline(never)]
    pub fn unload(&mut self) {
        self.state.unload();
        self.state.set_xcr0(self.extended.xcr0());
        self.extended.save();
    }

    pub fn choose_switch(&mut self) {
        self.switch = if self.state.counts_time() { switch::vmx_switch_counting } else { switch::vmx_switch };
    }

    #[inline(never)]
    pub fn save_extended(&self, into: &mut Extended, tail: &mut [u8]) -> Result<usize, Full> {
        self.extended.save_into(into, tail)
    }

    #[inline(never)]
    pub fn restore_extended(&mut self, from: &Extended, tail: &[u8]) -> Result<(), StateError> {
        let xcr0 = self.state.xcr0();
        self.extended.restore_from(from, tail, xcr0)
    }

    /// An exit that is answered here, and needs nothing of the host, ends no run: an interrupt that waits ends the next
    /// entry.
    #[inline(never)]
    pub fn run(&mut self) -> Exit {
        loop {
            match self.enter() {
                Left::For(exit) => {
                    if matches!(exit, Exit::Cpuid) {
                        // CPUID's results depend on it.
                        self.state.set_xcr0(self.extended.xcr0());
                    }
                    return exit;
                }
                Left::ForNmi => {
                    switch::take_nmi(self.state.switched_mut());
                    return Exit::HostNmi;
                }
                Left::GoesOn => {}
            }
        }
    }

    #[inline]
    fn enter(&mut self) -> Left {
        self.extended.follow(self.state.xcr0());
        if let Some(tag) = self.state.take_flush() {
            self.flush(tag);
        }
        self.state.before_entry();
        // SAFETY: the VMCS is current, prepared by the `vmx` crate with tables that show only the guest's own memory,
        // and with this CPU's registers for exits; the assembly keeps every register that Rust expects to be kept (the
        // guest's x87, SSE and AVX registers stay loaded: the hypervisor is built without them).
        let is_failed = unsafe { (self.switch)(self.state.switched_mut(), self.is_launched) } != 0;
        let left = self.state.after_exit(if is_failed { Way::Failed } else { Way::Exit });
        self.is_launched = self.is_launched || left != Left::For(Exit::EntryRefused);
        left
    }

    /// Flushes all translations by the guest's tables, and those under its tag.
    #[cold]
    fn flush(&self, tag: u32) {
        let tables = [self.ept.into_bits(), 0];
        // SAFETY: the CPU is in VMX operation and has this type of INVEPT (`Capabilities::check_ept`).
        unsafe { asm!("invept {}, [{}]", in(reg) SINGLE_CONTEXT, in(reg) &raw const tables, options(nostack)) };
        if self.settings.controls.has(Control::EnableVpid) {
            let context = [u64::from(tag), 0];
            // SAFETY: likewise of INVVPID (`Settings::for_cpu`); the tag is not 0.
            unsafe { asm!("invvpid {}, [{}]", in(reg) SINGLE_CONTEXT, in(reg) &raw const context, options(nostack)) };
        }
    }
}

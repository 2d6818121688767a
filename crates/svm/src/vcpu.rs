// SPDX-License-Identifier: MIT OR Apache-2.0
//! One vCPU: the control block plus the registers it does not hold.

mod prepare;
mod saved;
mod state;
mod switched;

use core::ops::DerefMut;

use vm::exit::Exit;
use vm::vcpu::EntryState;

use crate::code;
use crate::event;
use crate::features::Features;
use crate::vmcb::{Clean, Vmcb, tlb};

pub use prepare::Tables;
pub use switched::{Owner, SpecCtrl, Switched};

/// Reset value of the page attribute table register (section 7.8.2).
const PAT_AFTER_RESET: u64 = 0x0007_0406_0007_0406;

/// One vCPU. `B` is how the control block is held: a box in tests, a page with a known physical address on
/// the machine.
pub struct Vcpu<B> {
    vmcb: B,
    switched: Switched,
    /// The guest's time is to be counted, for its own counters.
    counts_time: bool,
    /// Likewise, for the host's.
    counts_time_for_host: bool,
    /// XCR0 as the guest has it; the hypervisor loads it.
    xcr0: u64,
    /// SPEC_CTRL as the guest has it, where VMRUN does not exchange it.
    spec_ctrl: u64,
    features: Features,
}

impl<B: DerefMut<Target = Vmcb>> Vcpu<B> {
    /// A CPU that will start in `entry`. `asid` is from 1 to [`Features::asids`].
    pub fn new(mut vmcb: B, features: Features, asid: u32, tables: Tables, entry: &EntryState) -> Self {
        *vmcb = Vmcb::zeroed();
        prepare::control(&mut vmcb, asid, tables);
        if features.pause_filter {
            prepare::filter_pauses(&mut vmcb);
        }
        prepare::save(&mut vmcb, entry);
        vmcb.save.g_pat = PAT_AFTER_RESET;
        let switched =
            Switched { gprs: entry.gprs, guest_ticks: 0, owner: Owner::default(), spec_ctrl: SpecCtrl::default() };
        Self { vmcb, switched, counts_time: false, counts_time_for_host: false, xcr0: 1, spec_ctrl: 0, features }
    }

    /// The registers that VMRUN does not load, for the world switch.
    pub fn switched_mut(&mut self) -> &mut Switched {
        &mut self.switched
    }

    /// Returns whether the world switch is to count the guest's time.
    pub fn counts_time(&self) -> bool {
        self.counts_time || self.counts_time_for_host
    }

    /// The control block.
    pub fn vmcb(&self) -> &Vmcb {
        &self.vmcb
    }

    /// Returns the holder of the control block.
    pub fn holder(&self) -> &B {
        &self.vmcb
    }

    /// Moves it to another CPU, with this ASID there: translations under it are flushed at the next entry, and nothing
    /// that the CPU has cached of this control block is used (section 15.15).
    pub fn arrive(&mut self, asid: u32) {
        self.vmcb.control.asid = asid;
        self.vmcb.control.clean = Clean::empty();
        self.flush_tlb();
    }

    /// Requests a flush of this guest's translations at the next entry.
    pub fn flush_tlb(&mut self) {
        self.vmcb.control.tlb_control = if self.features.flush_by_asid { tlb::FLUSH_THIS_ASID } else { tlb::FLUSH_ALL };
    }

    /// Returns the exit of the guest's last run. Call once after each #VMEXIT: it also requeues an event if the exit
    /// interrupted its delivery.
    pub fn after_exit(&mut self) -> Exit {
        let control = &mut self.vmcb.control;
        control.tlb_control = tlb::KEEP;
        control.clean = if self.features.clean_bits { Clean::all() } else { Clean::empty() };
        event::requeue_undelivered(control, self.features.next_rip);
        code::decode(control, &self.features)
    }

    fn touched(&mut self, part: Clean) {
        self.vmcb.control.clean.remove(part);
    }
}

#[cfg(test)]
#[path = "vcpu_tests.rs"]
mod tests;

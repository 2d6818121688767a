// SPDX-License-Identifier: MIT OR Apache-2.0
//! The world switches of `switch.S`, by what they do beside the switch.

use core::arch::global_asm;

use mitigations::switch::{VARIANTS, Variant};
use svm::Vmcb;
use svm::code::number;
use svm::vcpu::Switched;

use crate::arch::address::DIRECT_MAP;
use crate::arch::trap::TrapFrame;

global_asm!(include_str!("../guest_registers.S"), include_str!("switch.S"));

/// A world switch.
pub type WorldSwitch = unsafe extern "C" fn(switched: *mut Switched, guest_vmcb: u64, host_vmcb: u64);

unsafe extern "C" {
    /// By [`Variant::index`].
    static svm_switches: [WorldSwitch; VARIANTS];
    /// The end of each of them.
    static svm_switch_ends: [u64; VARIANTS];
}

/// The world switch without anything beside it.
pub fn plain() -> WorldSwitch {
    // SAFETY: the assembly has as many entries, each a world switch, and nothing writes there.
    unsafe { (&raw const svm_switches[0]).read() }
}

/// The world switch that does so much.
pub fn of(variant: Variant) -> WorldSwitch {
    // SAFETY: as in `plain`.
    let switches = unsafe { &svm_switches };
    switches.get(variant.index()).copied().unwrap_or_else(plain)
}

/// The guest from which an NMI has taken the calling CPU. It is let in where the world switch ends: there it has waited
/// for the switch, unless it was what ended the guest's time.
pub fn interrupted_guest(frame: &TrapFrame) -> Option<u32> {
    // SAFETY: the assembly has as many entries, and nothing writes there.
    if !unsafe { &svm_switch_ends }.contains(&frame.rip) {
        return None;
    }
    // SAFETY: at this instruction RDI is the switch's first argument again, which its caller holds.
    let owner = unsafe { (&raw const (*(frame.rdi as *const Switched)).owner).read() };
    // SAFETY: the control block lives as long as the argument is held; the CPU writes it only within the switch.
    let code = unsafe { (&raw const (*((DIRECT_MAP + owner.vmcb) as *const Vmcb)).control.exit_code).read_volatile() };
    (code == number::NMI).then_some(owner.guest)
}

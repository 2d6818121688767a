// SPDX-License-Identifier: MIT OR Apache-2.0
//! The world switches of `switch.S`, and the call of the host's handler for an NMI that an exit has taken.

use core::arch::global_asm;

use vmx::vcpu::Switched;

use crate::arch::trap::TrapFrame;

global_asm!(include_str!("../guest_registers.S"), include_str!("switch.S"));

/// A world switch: 0 after an exit, 1 if VMLAUNCH or VMRESUME has failed.
pub type WorldSwitch = unsafe extern "C" fn(switched: *mut Switched, is_launched: bool) -> u32;

unsafe extern "C" {
    /// Without anything beside the switch.
    pub fn vmx_switch(switched: *mut Switched, is_launched: bool) -> u32;
    /// With the count of the guest's time.
    pub fn vmx_switch_counting(switched: *mut Switched, is_launched: bool) -> u32;
    fn vmx_exit();
    fn vmx_take_nmi(switched: *const Switched);
    static vmx_nmi_taken: u8;
}

/// The address at which exits come back.
pub fn exit_address() -> u64 {
    vmx_exit as *const () as u64
}

/// Calls the host's handler for the NMI that has taken the calling CPU from this guest.
pub fn take_nmi(switched: &Switched) {
    // SAFETY: the IDT is loaded, and the gate's stack is free: NMIs are blocked until the handler's IRET.
    unsafe { vmx_take_nmi(switched) };
}

/// The guest from which an NMI has taken the calling CPU.
pub fn interrupted_guest(frame: &TrapFrame) -> Option<u32> {
    // SAFETY: at this instruction RDI is the routine's argument, which its caller holds.
    (frame.rip == &raw const vmx_nmi_taken as u64).then(|| unsafe { (*(frame.rdi as *const Switched)).guest })
}

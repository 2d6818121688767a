// SPDX-License-Identifier: MIT OR Apache-2.0
//! MSRs that CPUID promises and a hypervisor below may refuse: an access that #GP answers is an error here, not the
//! host's end.
//!
//! Only while the calling CPU has this image's IDT: in an image on trial traps are the old image's, and nothing is
//! probed.

use core::arch::global_asm;

use super::trap::TrapFrame;

global_asm!(include_str!("probe.S"));

unsafe extern "C" {
    fn probe_read(msr: u32, into: *mut u64) -> u32;
    fn probe_write(msr: u32, value: u64) -> u32;
    static probe_read_at: u8;
    static probe_write_at: u8;
    static probe_refused: u8;
}

/// #GP answered the access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

/// Reads a register.
///
/// # Safety
/// Reading the register, if it exists, has no effect that breaks what others rely on.
pub unsafe fn read_msr(msr: u32) -> Result<u64, Refused> {
    let mut value = 0;
    // SAFETY: the caller's promise; the routine keeps to the C calling convention and writes only to `value`, and only
    // if the register was read. #GP at its RDMSR goes on at its end (`takes`).
    match unsafe { probe_read(msr, &raw mut value) } {
        0 => Ok(value),
        _ => Err(Refused),
    }
}

/// Writes a register.
///
/// # Safety
/// The effect of the value, if the register takes it, keeps the promises of the register's owner.
pub unsafe fn write_msr(msr: u32, value: u64) -> Result<(), Refused> {
    // SAFETY: the caller's promise; see `read_msr`.
    match unsafe { probe_write(msr, value) } {
        0 => Ok(()),
        _ => Err(Refused),
    }
}

/// Returns whether a general-protection fault is a probe's: then it goes on where it reports the refusal.
pub fn takes(frame: &mut TrapFrame) -> bool {
    let is_probe = [&raw const probe_read_at, &raw const probe_write_at].contains(&(frame.rip as *const u8));
    if is_probe {
        frame.rip = (&raw const probe_refused) as u64;
    }
    is_probe
}

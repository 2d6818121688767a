// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machine checks: the registers, and how a CPU that was interrupted by one goes on. `mca` decides what they mean.

use mca::{Context, Fatal, Found, Registers, Unit, Why};

use super::percpu::{self, PerCpu};
use super::{apic, cpu, trap};

/// The calling CPU's registers.
pub struct Msrs;

impl Registers for Msrs {
    fn read(&mut self, register: u32) -> u64 {
        // SAFETY: `mca` reads the registers that CPUID and MCG_CAP enumerate; reading changes nothing.
        unsafe { cpu::read_msr(register) }
    }

    fn write(&mut self, register: u32, value: u64) {
        // SAFETY: as above; `mca` writes what these registers take: zeros to a bank that has been read, ones to what
        // enables banks. They have no other owner.
        unsafe { cpu::write_msr(register, value) };
    }
}

/// The calling CPU's machine-check unit.
pub fn unit() -> Option<Unit> {
    const RECOVERY_FEATURES: u32 = 0x8000_0007;
    let features = cpu::cpuid(1, 0).edx;
    let has_leaf = cpu::cpuid(0x8000_0000, 0).eax >= RECOVERY_FEATURES;
    let recovery = if has_leaf { cpu::cpuid(RECOVERY_FEATURES, 0).ebx } else { 0 };
    Unit::detect(features, recovery, &mut Msrs)
}

/// Handles a machine check that has interrupted the host, anywhere. An error that is survived waits for the CPU's loop.
/// `trap.S` makes the next one possible (MCG_STATUS.MCIP), once nothing is left on the interrupt stack.
///
/// # Errors
/// The host must end.
pub fn in_host() -> Result<(), Fatal> {
    let unit = unit().ok_or(Fatal { why: Why::Unexplained, found: None })?;
    leave_for_loop(&unit, Context::Host)?;
    if percpu::number().is_some() {
        // The loop may have been about to halt: this wakes it.
        apic::wake_self_from_anywhere(trap::vector::WAKE);
    }
    Ok(())
}

/// A machine check has interrupted a guest, which the CPU has left. Whether the guest must end.
///
/// # Errors
/// The host must end.
pub fn in_guest() -> Result<bool, Fatal> {
    let unit = unit().ok_or(Fatal { why: Why::Unexplained, found: None })?;
    let ends_guest = leave_for_loop(&unit, Context::Guest)?;
    // No interrupt stack is in use: the CPU has left the guest instead.
    unit.finish(&mut Msrs);
    Ok(ends_guest)
}

fn leave_for_loop(unit: &Unit, context: Context) -> Result<bool, Fatal> {
    let judgement = unit.exception(context, &mut Msrs)?;
    judgement.found.iter().try_for_each(keep)?;
    Ok(judgement.ends_interrupted_guest)
}

fn keep(found: &Found) -> Result<(), Fatal> {
    let fatal = |why| Fatal { why, found: Some(*found) };
    // A CPU that has no data of its own yet has no loop either.
    percpu::number().ok_or(fatal(Why::NotRestartable))?;
    let me = PerCpu::current();
    if !me.damage.put(found) {
        return Err(fatal(Why::TooMany));
    }
    me.calls.for_work();
    Ok(())
}

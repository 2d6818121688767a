// SPDX-License-Identifier: MIT OR Apache-2.0
//! VMX operation of each CPU: VMXON and VMXOFF (section 24.7), and the region that the CPU keeps meanwhile.
//!
//! A CPU is in VMX operation while this image may run guests on it, and in no other time: when another image has the
//! CPU, in an update or for good, it has left. So no image has to know in which state one before it has left a CPU.

use core::arch::asm;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use vmx::{Settings, firmware, msr};

use crate::arch::address::DIRECT_MAP;
use crate::arch::cpu;
use crate::arch::cpu_local::cpu_local;
use crate::arch::memory::permanent_frames;
use crate::arch::percpu::PerCpu;
use crate::arch::unavailable::Unavailable;

const CR4_VMXE: u64 = 1 << 13;

cpu_local! {
    /// The VMXON region; 0 while the CPU has none. A CPU that comes back finds it.
    static REGION: AtomicU64 = AtomicU64::new(0);
}
cpu_local! {
    /// The CPU is in VMX operation.
    static IS_ENTERED: AtomicBool = AtomicBool::new(false);
}

/// Makes the region of the CPU with this number.
pub fn prepare(index: u32, settings: &Settings) -> Result<(), Unavailable> {
    let place = REGION.of(index).ok_or(Unavailable::OutOfMemory)?;
    if place.load(Ordering::Relaxed) == 0 {
        let region = permanent_frames(4096).ok_or(Unavailable::OutOfMemory)?.0;
        write_revision(region, settings);
        place.store(region, Ordering::Relaxed);
    }
    Ok(())
}

/// A region begins with the revision of its format (section 25.2).
pub fn write_revision(region: u64, settings: &Settings) {
    // SAFETY: the caller has just allocated the frame, which the direct map shows; no CPU uses it yet.
    unsafe { ((DIRECT_MAP + region) as *mut u32).write(settings.capabilities().basic.revision()) };
}

/// The calling CPU enters VMX operation, unless it is in it.
pub fn enter(settings: &Settings) -> Result<(), Unavailable> {
    if IS_ENTERED.mine().load(Ordering::Relaxed) {
        return Ok(());
    }
    prepare(PerCpu::current().index, settings)?;
    let_through_firmware()?;
    let capabilities = settings.capabilities();
    // SAFETY: the bits that VMX requires, beside those that are set: NE changes how x87 reports errors, which the host
    // does not use; VMXE enables the instructions of this module.
    unsafe {
        asm!("mov {t}, cr0", "or {t}, {b}", "mov cr0, {t}", t = out(reg) _, b = in(reg) capabilities.cr0.must,
            options(nostack));
        asm!("mov {t}, cr4", "or {t}, {b}", "mov cr4, {t}", t = out(reg) _, b = in(reg) capabilities.cr4.must | CR4_VMXE,
            options(nostack));
    }
    let region = REGION.mine().load(Ordering::Relaxed);
    let is_refused: u8;
    // SAFETY: CR4.VMXE is set, IA32_FEATURE_CONTROL allows VMX; the region is a whole frame of this CPU's with the
    // CPU's revision in it, for ever.
    unsafe { asm!("vmxon [{}]", "setna {}", in(reg) &raw const region, out(reg_byte) is_refused, options(nostack)) };
    if is_refused != 0 {
        return Err(Unavailable::Refused);
    }
    IS_ENTERED.mine().store(true, Ordering::Relaxed);
    Ok(())
}

/// Firmware may have left this CPU's register unlocked, in which VMXON is #GP.
fn let_through_firmware() -> Result<(), Unavailable> {
    // SAFETY: the register exists with VMX; reading it has no effect.
    let now = unsafe { cpu::read_msr(msr::FEATURE_CONTROL) };
    if let Some(next) = firmware::enabling(now).map_err(Unavailable::Vmx)? {
        // SAFETY: the register is not locked, and takes these bits on a CPU with VMX.
        unsafe { cpu::write_msr(msr::FEATURE_CONTROL, next) };
    }
    Ok(())
}

/// The calling CPU, from which every vCPU has departed, leaves VMX operation, if it is in it.
pub fn leave() {
    if !IS_ENTERED.mine().swap(false, Ordering::Relaxed) {
        return;
    }
    // SAFETY: the CPU is in VMX operation, and no VMCS is active on it: each vCPU has cleared its own. Nothing uses the
    // instructions from here on, so the bit that enables them may go.
    unsafe {
        asm!("vmxoff", options(nostack));
        asm!("mov {t}, cr4", "and {t}, {b}", "mov cr4, {t}", t = out(reg) _, b = in(reg) !CR4_VMXE, options(nostack));
    }
}

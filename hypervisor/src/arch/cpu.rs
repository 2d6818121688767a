// SPDX-License-Identifier: MIT OR Apache-2.0
//! Single instructions.

use core::arch::asm;

/// The time stamp counter.
#[inline]
pub fn tsc() -> u64 {
    // SAFETY: RDTSC has no effect but its result; CR4.TSD does not matter at privilege level 0.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// CPUID.
pub fn cpuid(leaf: u32, subleaf: u32) -> core::arch::x86_64::CpuidResult {
    core::arch::x86_64::__cpuid_count(leaf, subleaf)
}

/// Reads a model specific register that exists on every CPU this module is used on.
///
/// # Safety
/// The register exists; reading it has no side effect that breaks what others rely on.
#[inline]
pub unsafe fn read_msr(register: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the caller's promise.
    unsafe {
        asm!("rdmsr", in("ecx") register, out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags))
    };
    u64::from(high) << 32 | u64::from(low)
}

/// Writes a model specific register.
///
/// # Safety
/// The register exists, takes the value, and the effect keeps the promises of the owner of it.
#[inline]
pub unsafe fn write_msr(register: u32, value: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("wrmsr", in("ecx") register, in("eax") value as u32, in("edx") (value >> 32) as u32, options(nostack, preserves_flags));
    }
}

/// CR4.
pub fn read_cr4() -> u64 {
    let value;
    // SAFETY: reading it has no effect.
    unsafe { asm!("mov {}, cr4", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// A hint that this is a spin loop.
#[inline]
pub fn pause() {
    core::hint::spin_loop();
}

/// Some instructions that do nothing.
#[inline]
pub fn idle_a_moment() {
    // SAFETY: NOP does nothing.
    unsafe { asm!(".rept 16", "nop", ".endr", options(nomem, nostack, preserves_flags)) };
}

/// Has the local APIC request what it has pending once more, by a write of the task priority, which is always 0.
///
/// No real CPU needs it. QEMU's emulator can lose the request of an interrupt in the moment of a world switch (see
/// `reminder`). An idle CPU would wait for it for ever.
#[inline]
pub fn poll_pending_interrupts() {
    // SAFETY: the task priority stays as it is: no interrupt is held back.
    unsafe { asm!("mov cr8, {}", in(reg) 0u64, options(nostack, preserves_flags)) };
}

/// Waits for an interrupt: opens interrupts and halts in one step, closes them again when one has been served.
pub fn wait_for_interrupt() {
    poll_pending_interrupts();
    // SAFETY: STI takes effect after HLT has begun, so no wake-up is lost; the IDT is loaded; handlers keep to their
    // own data. CLI restores what callers expect.
    unsafe { asm!("sti", "hlt", "cli", options(nostack)) };
}

/// Lets pending interrupts in.
pub fn take_pending_interrupts() {
    // SAFETY: as in `wait_for_interrupt`; the NOP ends STI's shadow.
    unsafe { asm!("sti", "nop", "cli", options(nostack)) };
}

/// Masks interrupts on the calling CPU.
pub fn mask_interrupts() {
    // SAFETY: interrupts that wait are taken once they are let in again.
    unsafe { asm!("cli", options(nostack)) };
}

/// Halts for good, interrupts off.
pub fn halt_forever() -> ! {
    loop {
        // SAFETY: nothing runs after this.
        unsafe { asm!("cli", "hlt", options(nomem, nostack)) };
    }
}

/// The extended control register, which is the guest's while one is loaded.
///
/// # Safety
/// CR4.OSXSAVE is set.
#[inline]
pub unsafe fn read_xcr0() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the caller's promise; reading it has no effect.
    unsafe { asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags)) };
    u64::from(high) << 32 | u64::from(low)
}

/// Sets the extended control register of a guest, which stays loaded while the hypervisor runs (it uses no such state).
///
/// # Safety
/// CR4.OSXSAVE is set and the CPU supports every bit of `value`.
pub unsafe fn write_xcr0(value: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("xsetbv", in("ecx") 0, in("eax") value as u32, in("edx") (value >> 32) as u32, options(nomem, nostack))
    };
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The instructions the guests are made of.
//!
//! These are safe functions although they can crash the guest: that is for the guest to decide. The one thing they must
//! not do is break what the compiler takes for granted, and each block states why it does not.

use core::arch::asm;
use core::arch::x86_64::{__cpuid_count, _rdtsc};

/// Reads a byte from a port.
pub fn inb(port: u16) -> u8 {
    let value;
    // SAFETY: changes AL only; no device of this machine writes memory.
    unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Reads a word from a port.
pub fn inw(port: u16) -> u16 {
    let value;
    // SAFETY: changes AX only; no device of this machine writes memory.
    unsafe { asm!("in ax, dx", in("dx") port, out("ax") value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Reads a double word from a port.
pub fn inl(port: u16) -> u32 {
    let value;
    // SAFETY: changes EAX only; no device of this machine writes memory.
    unsafe { asm!("in eax, dx", in("dx") port, out("eax") value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Writes a byte to a port.
pub fn outb(port: u16, value: u8) {
    // SAFETY: changes no register; no device of this machine writes memory.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags)) };
}

/// Writes a word to a port.
pub fn outw(port: u16, value: u16) {
    // SAFETY: changes no register; no device of this machine writes memory.
    unsafe { asm!("out dx, ax", in("dx") port, in("ax") value, options(nomem, nostack, preserves_flags)) };
}

/// Writes a double word to a port.
pub fn outl(port: u16, value: u32) {
    // SAFETY: changes no register; no device of this machine writes memory.
    unsafe { asm!("out dx, eax", in("dx") port, in("eax") value, options(nomem, nostack, preserves_flags)) };
}

/// Reads a model-specific register.
pub fn read_msr(number: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: changes EAX and EDX only.
    unsafe { asm!("rdmsr", in("ecx") number, out("eax") low, out("edx") high, options(nostack, preserves_flags)) };
    u64::from(high) << 32 | u64::from(low)
}

/// Writes a model-specific register.
pub fn write_msr(number: u32, value: u64) {
    let (low, high) = (value as u32, (value >> 32) as u32);
    // SAFETY: changes no register of the compiler's; memory is declared as touched, since an interrupt may follow.
    unsafe { asm!("wrmsr", in("ecx") number, in("eax") low, in("edx") high, options(nostack, preserves_flags)) };
}

/// Reads a performance counter.
#[inline(always)]
pub fn read_counter(number: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: changes EAX and EDX only.
    unsafe { asm!("rdpmc", in("ecx") number, out("eax") low, out("edx") high, options(nostack, preserves_flags)) };
    u64::from(high) << 32 | u64::from(low)
}

/// CR4: RDPMC is for all privilege levels (AMD APM vol. 2, section 3.1.3).
pub const CR4_PCE: u64 = 1 << 8;
/// CR4: the operating system knows FXSAVE and SSE (AMD APM vol. 2, section 3.1.3).
pub const CR4_OSFXSR: u64 = 1 << 9;
/// CR4: the operating system knows XSAVE.
pub const CR4_OSXSAVE: u64 = 1 << 18;

/// Reads CR4.
pub fn cr4() -> u64 {
    let value;
    // SAFETY: reads only.
    unsafe { asm!("mov {}, cr4", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Writes CR4.
pub fn set_cr4(value: u64) {
    // SAFETY: the values used keep paging and long mode as they are.
    unsafe { asm!("mov cr4, {}", in(reg) value, options(nostack, preserves_flags)) };
}

/// Writes an extended control register.
pub fn set_xcr(register: u32, value: u64) {
    // SAFETY: compiled code uses no register that XCR0 is about.
    unsafe {
        asm!("xsetbv", in("ecx") register, in("eax") value as u32, in("edx") (value >> 32) as u32, options(nostack));
    }
}

/// Executes CPUID: EAX, EBX, ECX, EDX.
pub fn cpuid(leaf: u32) -> [u32; 4] {
    let answer = __cpuid_count(leaf, 0);
    [answer.eax, answer.ebx, answer.ecx, answer.edx]
}

/// The time stamp counter, once everything before it is done and before anything after it is begun.
#[inline(always)]
pub fn ticks() -> u64 {
    // SAFETY: LFENCE orders, and changes nothing.
    unsafe { asm!("lfence", options(nostack, preserves_flags)) };
    // SAFETY: every 64-bit CPU has RDTSC, and CR4.TSD is clear.
    let ticks = unsafe { _rdtsc() };
    // SAFETY: as above.
    unsafe { asm!("lfence", options(nostack, preserves_flags)) };
    ticks
}

/// Lets interrupts in (after the next instruction).
pub fn interrupts_on() {
    // SAFETY: every vector has a handler that leaves all registers as they were (see interrupts.rs).
    unsafe { asm!("sti", options(nostack)) };
}

/// Keeps interrupts out.
pub fn interrupts_off() {
    // SAFETY: changes the interrupt flag only.
    unsafe { asm!("cli", options(nostack)) };
}

/// Lets interrupts in and sleeps until one came.
pub fn sleep_until_interrupt() {
    // SAFETY: as interrupts_on; the shadow of STI keeps an interrupt from coming between the two.
    unsafe { asm!("sti", "hlt", "cli", options(nostack)) };
}

/// Never comes back.
pub fn halt_for_good() -> ! {
    loop {
        // SAFETY: nothing follows.
        unsafe { asm!("cli", "hlt", options(nomem, nostack)) };
    }
}

/// Reads a double word at an address of the machine.
pub fn read_memory(address: u64) -> u32 {
    // SAFETY: the addresses used are no objects of Rust's; all of the first 4 GiB is mapped.
    unsafe { (address as *const u32).read_volatile() }
}

/// Writes a double word at an address of the machine.
pub fn write_memory(address: u64, value: u32) {
    // SAFETY: as read_memory.
    unsafe { (address as *mut u32).write_volatile(value) };
}

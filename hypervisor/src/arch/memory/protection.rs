// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calling CPU's memory controls in CR0 and CR4: protection, and TLB flushes.

use core::arch::asm;

use units::PageSize;

use crate::arch::cpu;

/// The largest pages that this CPU has.
pub fn largest_page() -> PageSize {
    let has_gib_pages = cpu::cpuid(0x8000_0001, 0).edx & (1 << 26) != 0;
    if has_gib_pages { PageSize::Gib1 } else { PageSize::Mib2 }
}

/// Turns on what the calling CPU has of WP, NX, global pages, SMEP, SMAP and machine checks.
pub fn protect_this_cpu() {
    const MCE: u64 = 1 << 6;
    const PGE: u64 = 1 << 7;
    const OSXSAVE: u64 = 1 << 18;
    const SMEP: u64 = 1 << 20;
    const SMAP: u64 = 1 << 21;
    const OSFXSR: u64 = 0b11 << 9;
    let features = cpu::cpuid(7, 0).ebx;
    let has_xsave = cpu::cpuid(1, 0).ecx & (1 << 26) != 0;
    let has_machine_checks = cpu::cpuid(1, 0).edx & (1 << 7) != 0;
    let bits = PGE
        | OSFXSR
        | if has_machine_checks { MCE } else { 0 }
        | if features & (1 << 7) != 0 { SMEP } else { 0 }
        | if features & (1 << 20) != 0 { SMAP } else { 0 }
        | if has_xsave { OSXSAVE } else { 0 };
    // SAFETY: the CPU has each feature; no page is a user page, so SMEP and SMAP forbid nothing that is done.
    // OSFXSR and OSXSAVE let guests' registers be saved and restored; the hypervisor itself uses none of them.
    unsafe {
        asm!("mov {t}, cr4", "or {t}, {b}", "mov cr4, {t}", t = out(reg) _, b = in(reg) bits, options(nostack));
        asm!("mov {t}, cr0", "or {t}, {wp}", "and {t}, {not_em_ts}", "or {t}, 2", "mov cr0, {t}",
            t = out(reg) _, wp = in(reg) 1u64 << 16, not_em_ts = in(reg) !0xcu64, options(nostack));
    }
}

/// The calling CPU flushes every translation, global ones too: they go when CR4.PGE changes (AMD APM vol. 2,
/// section 5.5.3).
pub fn flush_translations() {
    const PGE: u64 = 1 << 7;
    // SAFETY: the bit is put back as it was, and page tables show the same memory with and without it.
    unsafe {
        asm!("mov {old}, cr4", "mov {new}, {old}", "xor {new}, {pge}", "mov cr4, {new}", "mov cr4, {old}",
            old = out(reg) _, new = out(reg) _, pge = const PGE, options(nostack));
    }
}

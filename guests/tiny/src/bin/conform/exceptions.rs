// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exceptions and their error codes (AMD APM vol. 2, sections 8.2 and 8.4).

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};
use tiny::answers::{Wrong, expect, expect_exception};
use tiny::attempt::{GENERAL_PROTECTION, INVALID_OPCODE, PAGE_FAULT, attempt};
use tiny::{cpu, interrupts};

const BREAKPOINT: u8 = 3;
/// Behind all that is mapped.
const UNMAPPED: u64 = 5 << 30;

/// A division by zero is #DE.
pub fn divide_error() -> Result<(), Wrong> {
    expect_exception("division by", 0, 0, || {
        // SAFETY: changes what it reports; an attempt survives the exception.
        unsafe { asm!("div {0:e}", in(reg) 0_u32, inout("eax") 1 => _, inout("edx") 0 => _) }
    })
}

/// UD2 is #UD.
pub fn invalid_opcode() -> Result<(), Wrong> {
    expect_exception("UD2", 0, INVALID_OPCODE, || {
        // SAFETY: an attempt survives the exception.
        unsafe { asm!("ud2", options(nomem, nostack, preserves_flags)) }
    })
}

static BROKE_AT: AtomicU64 = AtomicU64::new(0);

/// INT3 is a trap: the frame points behind it.
pub fn breakpoint() -> Result<(), Wrong> {
    let behind: u64;
    interrupts::hook(BREAKPOINT, |rip| BROKE_AT.store(rip, Ordering::Relaxed));
    // SAFETY: the hook comes back.
    unsafe { asm!("int3", "5: lea {}, [rip + 5b]", out(reg) behind) };
    expect("breakpoint behind", behind, BROKE_AT.load(Ordering::Relaxed), behind)
}

/// A selector outside of its table is #GP with the selector as its error code.
pub fn selector_error_code() -> Result<(), Wrong> {
    const OUTSIDE: u16 = 0x1230;
    let loaded = attempt(|| {
        // SAFETY: an attempt survives the exception; FS is not used.
        unsafe { asm!("mov fs, {:x}", in(reg) OUTSIDE, options(nostack, preserves_flags)) }
    });
    match loaded {
        Err(found) if found.vector == GENERAL_PROTECTION => {
            expect("error code of selector", OUTSIDE.into(), found.error.into(), OUTSIDE.into())
        }
        Err(found) => Err(Wrong::new("selector", OUTSIDE.into(), found.vector.into())),
        Ok(()) => Err(Wrong::new("selector", OUTSIDE.into(), u64::MAX)),
    }
}

/// A page fault's error code distinguishes writes from reads.
pub fn page_fault_error_code() -> Result<(), Wrong> {
    let code = |found: Result<(), tiny::attempt::Exception>| match found {
        Err(found) if found.vector == PAGE_FAULT => u64::from(found.error),
        _ => u64::MAX,
    };
    expect("read of", UNMAPPED, code(attempt(|| drop_value(cpu::read_memory(UNMAPPED)))), 0)?;
    expect("write of", UNMAPPED, code(attempt(|| cpu::write_memory(UNMAPPED, 0))), 2)
}

/// The read was the point.
fn drop_value<T>(_: T) {}

const OSXSAVE: u32 = 1 << 27;
const XSAVE: u32 = 1 << 26;

/// XCR0 keeps the bit of x87, and has no bits that CPUID does not list.
pub fn xcr0_reserved() -> Result<(), Wrong> {
    if cpu::cpuid(1)[2] & XSAVE == 0 {
        return Ok(());
    }
    cpu::set_cr4(cpu::cr4() | cpu::CR4_OSXSAVE);
    for junk in [0, 2, 1 | 1 << 62] {
        expect_exception("XSETBV of", junk, GENERAL_PROTECTION, || cpu::set_xcr(0, junk))?;
    }
    Ok(())
}

/// CPUID's OSXSAVE is CR4's.
pub fn osxsave_follows_cr4() -> Result<(), Wrong> {
    let has_xsave = cpu::cpuid(1)[2] & XSAVE != 0;
    for is_on in [false, true, false] {
        let others = cpu::cr4() & !cpu::CR4_OSXSAVE;
        let is_on = is_on && has_xsave;
        cpu::set_cr4(if is_on { others | cpu::CR4_OSXSAVE } else { others });
        expect("OSXSAVE with CR4", cpu::cr4(), u64::from(cpu::cpuid(1)[2] & OSXSAVE != 0), is_on.into())?;
    }
    Ok(())
}

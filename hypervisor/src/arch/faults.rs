// SPDX-License-Identifier: MIT OR Apache-2.0
//! Failures of the machine on purpose, in the test image only.

use core::arch::asm;

use units::PhysAddr;

use super::address::{self, DIRECT_MAP};
use super::cpu;
use super::probe::{self, Refused};

/// Writes reserved bits to a register. PKRS has none above bit 31 (Intel SDM vol. 4, table 2-2), and where there is no
/// such register every write is refused.
///
/// # Errors
/// #GP answered the write, as it is to.
pub fn write_reserved_bits() -> Result<(), Refused> {
    const PKRS: u32 = 0x6e1;
    // SAFETY: no CPU takes the value: it has the register and refuses reserved bits, or has no such register.
    unsafe { probe::write_msr(PKRS, u64::MAX << 32) }
}

/// Writes to memory that is in use, as a stray pointer would.
pub fn write_astray(at: PhysAddr) {
    let at = (DIRECT_MAP + at.0) as *mut u8;
    // SAFETY: memory that the direct map shows and that holds plain bytes, which nothing reads meanwhile; where it is
    // locked the write is a page fault, which ends the host.
    unsafe { at.write_volatile(!at.read_volatile()) };
}

/// Raises the exception that a self-test asks for.
pub fn provoke(which: Provocation) {
    match which {
        // SAFETY: an exception is what is wanted.
        Provocation::InvalidOpcode => unsafe { asm!("ud2", options(nomem, nostack)) },
        Provocation::PageFault => {
            // SAFETY: nothing is mapped there: an exception is what is wanted.
            let value: u64 = unsafe { core::ptr::read_volatile(0xdead_0000 as *const u64) };
            log::error!("unmapped memory could be read: {value:#x}");
        }
        Provocation::StackOverflow => {
            deepen(0);
        }
        Provocation::WriteToCode => {
            let code = address::text_start() as *mut u8;
            // SAFETY: the page is read-only: an exception is what is wanted.
            unsafe { core::ptr::write_volatile(code, 0) };
            log::error!("code could be written");
        }
    }
    cpu::pause();
}

/// Exceptions that a self-test raises.
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub enum Provocation {
    InvalidOpcode,
    PageFault,
    StackOverflow,
    WriteToCode,
}

#[allow(unconditional_recursion, reason = "the stack is meant to overflow")]
#[inline(never)]
fn deepen(depth: u64) -> u64 {
    let room = [depth; 64];
    core::hint::black_box(&room);
    deepen(depth + 1) + core::hint::black_box(room)[3]
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies of a guest's memory, which the guest may write meanwhile.

use core::arch::asm;

use frames::FrameRange;
use units::PhysRange;
use vm::addr::AccessSize;

use crate::arch::address::DIRECT_MAP;

/// Up to here a copy is not worth the start of a string instruction.
const SHORT_BYTES: usize = 64;

/// Copies between a guest's memory and the hypervisor's, each byte with one access. The guest may write the memory
/// meanwhile: what was checked must be what is used, so the compiler may not fetch anything a second time, as it may
/// with a plain copy. It knows of no other access than these instructions'.
///
/// # Safety
/// Both ranges are mapped; no reference points into a guest's.
#[inline(never)]
pub(super) unsafe fn copy(from: *const u8, into: *mut u8, bytes: usize) {
    if bytes > SHORT_BYTES {
        // By quadwords: CPUs move both by cache lines, emulators do not.
        // SAFETY: the caller's promise; the direction flag is clear by the calling convention.
        return unsafe {
            asm!("rep movsq", "mov ecx, {rest:e}", "rep movsb", rest = in(reg) bytes & 7,
                inout("rsi") from => _, inout("rdi") into => _, inout("rcx") bytes / 8 => _,
                options(nostack, preserves_flags));
        };
    }
    let mut at = 0;
    // Copies the bytes of one register if so many are left.
    macro_rules! step {
        ($width:literal, $class:ident, $register:literal) => {
            if bytes - at >= $width {
                // SAFETY: the caller's promise: so many bytes are left.
                unsafe {
                    asm!(
                        concat!("mov ", $register, ", [{from} + {at}]"), concat!("mov [{into} + {at}], ", $register),
                        scratch = out($class) _, from = in(reg) from, into = in(reg) into, at = in(reg) at,
                        options(nostack, preserves_flags),
                    );
                }
                at += $width;
            }
        };
    }
    while bytes - at >= 8 {
        step!(8, reg, "{scratch}");
    }
    step!(4, reg, "{scratch:e}");
    step!(2, reg, "{scratch:x}");
    step!(1, reg_byte, "{scratch}");
    debug_assert_eq!(at, bytes);
}

/// Writes zeros over a part of frames: what another guest left must not be seen.
pub(super) fn clear(frames: &FrameRange, part: PhysRange) {
    let part = part.intersection(frames.range()).unwrap_or_default();
    // SAFETY: the frames belong to a guest that does not exist yet, and to no other; the direct map shows them.
    unsafe { core::ptr::write_bytes((DIRECT_MAP + part.start().0) as *mut u8, 0, part.bytes() as usize) };
}

/// Reads a quadword by one load, which the compiler can neither repeat nor leave out (see [`copy`]).
///
/// # Safety
/// It is mapped; no reference points into it.
#[inline(always)]
pub(super) unsafe fn load(from: *const u8) -> u64 {
    let value;
    // SAFETY: the caller's promise.
    unsafe { asm!("mov {}, [{}]", out(reg) value, in(reg) from, options(nostack, preserves_flags, readonly)) };
    value
}

/// Replaces `old` by `new` if it is there still; returns whether it was, or `None` for a size that has no instruction
/// here.
///
/// # Safety
/// As for [`load`].
#[cold]
pub(super) unsafe fn compare_exchange(at: *mut u8, size: AccessSize, old: u64, new: u64) -> Option<bool> {
    let is_equal: u8;
    macro_rules! compare_exchange {
        ($instruction:literal) => {
            // SAFETY: the caller's promise; it is one locked access, as a CPU's that walks the guest's tables.
            unsafe {
                asm!($instruction, "sete {is_equal}", at = in(reg) at, new = in(reg) new,
                    is_equal = out(reg_byte) is_equal, inout("rax") old => _, options(nostack));
            }
        };
    }
    match size {
        AccessSize::Dword => compare_exchange!("lock cmpxchg [{at}], {new:e}"),
        AccessSize::Qword => compare_exchange!("lock cmpxchg [{at}], {new}"),
        AccessSize::Byte | AccessSize::Word => return None,
    }
    Some(is_equal != 0)
}

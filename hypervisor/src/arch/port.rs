// SPDX-License-Identifier: MIT OR Apache-2.0
//! I/O ports.

use core::arch::asm;

/// Reads a byte.
///
/// # Safety
/// Reading this port breaks nothing that others rely on.
pub unsafe fn read_u8(port: u16) -> u8 {
    let value;
    // SAFETY: the caller's promise; IN touches no memory.
    unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Reads a word.
///
/// # Safety
/// As for [`read_u8`].
pub unsafe fn read_u16(port: u16) -> u16 {
    let value;
    // SAFETY: the caller's promise; IN touches no memory.
    unsafe { asm!("in ax, dx", in("dx") port, out("ax") value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Reads a doubleword.
///
/// # Safety
/// As for [`read_u8`].
pub unsafe fn read_u32(port: u16) -> u32 {
    let value;
    // SAFETY: the caller's promise; IN touches no memory.
    unsafe { asm!("in eax, dx", in("dx") port, out("eax") value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Writes a byte.
///
/// # Safety
/// Writing this port breaks nothing that others rely on.
pub unsafe fn write_u8(port: u16, value: u8) {
    // SAFETY: the caller's promise; OUT touches no memory of ours.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nostack, preserves_flags)) };
}

/// Writes bytes to one port in their order, in one instruction: a hypervisor below us sees one exit, not one per byte.
///
/// # Safety
/// As for [`write_u8`], for every byte.
pub unsafe fn write_bytes(port: u16, bytes: &[u8]) {
    // SAFETY: the caller's promise; the instruction reads the slice from its first to its last byte, since the
    // direction flag is clear by the calling convention.
    unsafe {
        asm!("rep outsb", in("dx") port, inout("rsi") bytes.as_ptr() => _, inout("rcx") bytes.len() => _,
            options(readonly, nostack, preserves_flags));
    }
}

/// Reads a port as often as there is room, in one instruction: a hypervisor below us sees one exit, not one per byte.
///
/// # Safety
/// As for [`read_u8`], for every byte.
pub unsafe fn read_bytes(port: u16, into: &mut [u8]) {
    // SAFETY: the caller's promise; the instruction writes the slice from its first to its last byte, since the
    // direction flag is clear by the calling convention.
    unsafe {
        asm!("rep insb", in("dx") port, inout("rdi") into.as_mut_ptr() => _, inout("rcx") into.len() => _,
            options(nostack, preserves_flags));
    }
}

/// Writes a word.
///
/// # Safety
/// As for [`write_u8`].
pub unsafe fn write_u16(port: u16, value: u16) {
    // SAFETY: the caller's promise; OUT touches no memory of ours.
    unsafe { asm!("out dx, ax", in("dx") port, in("ax") value, options(nostack, preserves_flags)) };
}

/// Writes a doubleword.
///
/// # Safety
/// As for [`write_u8`].
pub unsafe fn write_u32(port: u16, value: u32) {
    // SAFETY: the caller's promise; OUT touches no memory of ours.
    unsafe { asm!("out dx, eax", in("dx") port, in("eax") value, options(nostack, preserves_flags)) };
}

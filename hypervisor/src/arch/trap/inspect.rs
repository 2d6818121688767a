// SPDX-License-Identifier: MIT OR Apache-2.0
//! Code, registers and call chain, here or at a trap.

use core::arch::asm;

use super::frame::TrapFrame;

/// CR2, for a page fault's dump.
pub fn fault_address() -> u64 {
    let address;
    // SAFETY: reading CR2 has no effect.
    unsafe { asm!("mov {}, cr2", out(reg) address, options(nomem, nostack, preserves_flags)) };
    address
}

/// Return addresses up the frame-pointer chain from `frame`, nearest first, at most `into.len()`; returns how many.
/// `stack` is one, mapped.
pub fn backtrace(frame_pointer: u64, stack: core::ops::Range<u64>, into: &mut [u64]) -> usize {
    profile::walk::walk(frame_pointer, stack, &read_stack, into)
}

/// A quadword of a stack: for a walk, which asks only for what is on the stack that it is given, aligned.
pub fn read_stack(at: u64) -> u64 {
    // SAFETY: stacks are mapped; see above.
    unsafe { *(at as *const u64) }
}

/// Up to 16 bytes of the image's code from `rip` on; nothing outside it.
pub fn code_bytes(rip: u64) -> &'static [u8] {
    use crate::arch::address::{text_end, text_start};
    if !(text_start()..text_end()).contains(&rip) {
        return &[];
    }
    let bytes = (text_end() - rip).min(16) as usize;
    // SAFETY: inside the image's code, which is mapped readable and never changes.
    unsafe { core::slice::from_raw_parts(rip as *const u8, bytes) }
}

/// The frame pointer here and now.
pub fn frame_pointer() -> u64 {
    let value;
    // SAFETY: reading a register.
    unsafe { asm!("mov {}, rbp", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// The general purpose registers here and now, in [`endstate::epitaph::REGISTERS`]' order; RIP is the caller's.
#[inline(never)]
pub fn registers_here() -> endstate::epitaph::Registers {
    let mut values = [0_u64; 22];
    // SAFETY: every register is only read, and stored into the array; CR2 may be read at any time. The stack is used
    // for the flags alone.
    unsafe {
        asm!(
            "mov [{into} + 8], rsp", "pushfq", "pop qword ptr [{into} + 16]",
            "mov [{into} + 40], rax", "mov [{into} + 48], rbx", "mov [{into} + 56], rcx", "mov [{into} + 64], rdx",
            "mov [{into} + 72], rsi", "mov [{into} + 80], rdi", "mov [{into} + 88], rbp", "mov [{into} + 96], r8",
            "mov [{into} + 104], r9", "mov [{into} + 112], r10", "mov [{into} + 120], r11", "mov [{into} + 128], r12",
            "mov [{into} + 136], r13", "mov [{into} + 144], r14", "mov [{into} + 152], r15",
            "mov {scratch}, cs", "mov [{into} + 24], {scratch}", "mov {scratch}, ss", "mov [{into} + 32], {scratch}",
            "mov {scratch}, cr2", "mov [{into} + 160], {scratch}", "lea {scratch}, [rip]", "mov [{into}], {scratch}",
            into = in(reg) values.as_mut_ptr(), scratch = out(reg) _,
        );
    }
    values
}

/// A trap's registers, in the same order.
pub fn registers_of(f: &TrapFrame) -> endstate::epitaph::Registers {
    [
        f.rip,
        f.rsp,
        f.rflags,
        f.cs,
        f.ss,
        f.rax,
        f.rbx,
        f.rcx,
        f.rdx,
        f.rsi,
        f.rdi,
        f.rbp,
        f.r8,
        f.r9,
        f.r10,
        f.r11,
        f.r12,
        f.r13,
        f.r14,
        f.r15,
        fault_address(),
        f.error_code,
    ]
}

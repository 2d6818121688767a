// SPDX-License-Identifier: MIT OR Apache-2.0
//! Page tables' entries and the interrupt table's (AMD APM vol. 2, sections 5.4.2, 5.6.1, 8.2.9 and 8.9.4).

use core::arch::asm;
use core::mem::transmute;
use core::sync::atomic::{AtomicU64, Ordering};
use tiny::answers::{Wrong, expect, expect_exception, expect_that};
use tiny::attempt::{Exception, PAGE_FAULT, attempt};
use tiny::boot::tiny_page_directories;
use tiny::{cpu, interrupts, user};

const DIVIDE_ERROR: u8 = 0;
const DOUBLE_FAULT: u8 = 8;
/// A page of 2 MiB that is behind the program.
const PAGE: usize = 4;
const AT: u64 = (PAGE as u64) << 21;
const ACCESSED: u64 = 1 << 5;
const DIRTY: u64 = 1 << 6;
const NO_EXECUTE: u64 = 1 << 63;
const EFER: u32 = 0xc000_0080;
const EFER_NXE: u64 = 1 << 11;

fn entry() -> *mut u64 {
    (&raw mut tiny_page_directories).cast::<u64>().wrapping_add(PAGE)
}

fn marks() -> u64 {
    // SAFETY: an entry of the table; no reference to it exists.
    unsafe { entry().read_volatile() & (ACCESSED | DIRTY) }
}

/// Sets and clears bits of the entry.
fn change(set: u64, clear: u64) {
    // SAFETY: as above; the page stays where it is, and no object of Rust's is in it.
    unsafe {
        entry().write_volatile(entry().read_volatile() & !clear | set);
        asm!("invlpg [{}]", in(reg) AT, options(nostack, preserves_flags));
    }
}

/// A read sets the accessed bit, a write the dirty one too.
pub fn accessed_and_dirty() -> Result<(), Wrong> {
    change(0, ACCESSED | DIRTY);
    expect("marks before an access to", AT, marks(), 0)?;
    let value = cpu::read_memory(AT);
    expect("marks after a read of", AT, marks(), ACCESSED)?;
    cpu::write_memory(AT, value);
    expect("marks after a write to", AT, marks(), ACCESSED | DIRTY)
}

/// Calls a RET in the page; returns the error code of its page fault.
fn code_of_call() -> u64 {
    const RET: u32 = 0xc3;
    cpu::write_memory(AT, RET);
    // SAFETY: a function of one instruction, which is mapped one to one.
    match attempt(|| unsafe { transmute::<u64, extern "C" fn()>(AT)() }) {
        Ok(()) => 0,
        Err(Exception { vector: PAGE_FAULT, error }) => error.into(),
        Err(other) => u64::from(other.vector) << 32,
    }
}

/// With EFER.NXE bit 63 makes a fetch fault; without, it is reserved.
pub fn no_execute() -> Result<(), Wrong> {
    const PRESENT_FETCH: u64 = 1 | 1 << 4;
    let efer = cpu::read_msr(EFER);
    expect("call of", AT, code_of_call(), 0)?;
    cpu::write_msr(EFER, efer | EFER_NXE);
    change(NO_EXECUTE, 0);
    let fetch = code_of_call();
    cpu::write_msr(EFER, efer & !EFER_NXE);
    let reserved = expect_reserved();
    change(0, NO_EXECUTE);
    expect("error code of a call of", AT, fetch, PRESENT_FETCH)?;
    reserved
}

fn expect_reserved() -> Result<(), Wrong> {
    /// QEMU leaves the bit for a present page clear beside it.
    const RESERVED: u32 = 1 << 3;
    change(0, 0);
    match attempt(|| cpu::read_memory(AT)) {
        Err(Exception { vector: PAGE_FAULT, error }) if error & RESERVED != 0 => Ok(()),
        Err(found) => Err(Wrong::new("reserved bit", AT, u64::from(found.error) << 8 | u64::from(found.vector))),
        Ok(_) => Err(Wrong::new("reserved bit", AT, u64::MAX)),
    }
}

static STACK: AtomicU64 = AtomicU64::new(0);

fn note_stack(_: u64) {
    let pointer: u64;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, rsp", out(reg) pointer, options(nomem, nostack, preserves_flags)) };
    STACK.store(pointer, Ordering::Relaxed);
}

/// A division by zero whose gate is not present is a double fault, on the stack that its own gate names.
pub fn double_fault() -> Result<(), Wrong> {
    const STACK_BYTES: u64 = 4096;
    user::allow();
    interrupts::use_interrupt_stack(DOUBLE_FAULT);
    interrupts::hook(DOUBLE_FAULT, note_stack);
    interrupts::flip_present(DIVIDE_ERROR);
    let result = expect_exception("division without a gate by", 0, DOUBLE_FAULT, || {
        // SAFETY: changes what it reports; an attempt survives the exception.
        unsafe { asm!("div {0:e}", in(reg) 0_u32, inout("eax") 1 => _, inout("edx") 0 => _) }
    });
    interrupts::flip_present(DIVIDE_ERROR);
    let (stack, top) = (STACK.load(Ordering::Relaxed), user::interrupt_stack_top());
    result?;
    expect_that("double fault's stack below", top, stack, (top - STACK_BYTES..top).contains(&stack))
}

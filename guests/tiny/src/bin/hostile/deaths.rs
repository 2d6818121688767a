// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ends of the guest's own making.

use core::arch::asm;
use core::hint::spin_loop;
use tiny::answers::Wrong;
use tiny::{cpu, interrupts, user};

/// An exception without a table that has its handler, nor the next one's: shutdown.
pub fn triple_fault() -> Result<(), Wrong> {
    interrupts::load(0, 0);
    // SAFETY: does not come back.
    unsafe { asm!("int3") };
    Err(Wrong::new("breakpoint without a table", 3, 0))
}

/// A debug exception whose delivery raises the next one, without end: there is a breakpoint on its handler's first
/// instruction. On a stack of its own, so that the stack does not run out. (The form of CVE-2015-8104, a watchpoint on
/// the frame that the delivery writes, makes QEMU 7.2 abort with a failed assertion, with or without a hypervisor
/// below.)
pub fn debug_exceptions_without_end() -> Result<(), Wrong> {
    const DEBUG: u8 = 1;
    /// Breakpoint 0, on execution (AMD APM vol. 2, section 13.1.1.4).
    const BREAKPOINT: u64 = 1 << 10 | 1;
    user::allow();
    interrupts::use_interrupt_stack(DEBUG);
    // SAFETY: does not come back.
    unsafe {
        asm!("mov dr0, {handler}", "mov dr7, {breakpoint}", "jmp {handler}",
            handler = in(reg) interrupts::handler(DEBUG), breakpoint = in(reg) BREAKPOINT);
    }
    Err(Wrong::new("debug exceptions", DEBUG.into(), 0))
}

/// Takes its whole time for ever, with interrupts masked.
pub fn hang_with_interrupts_off() -> Result<(), Wrong> {
    cpu::interrupts_off();
    loop {
        spin_loop();
    }
}

/// Sleeps and will hear no interrupt: nothing can wake it.
pub fn sleep_with_interrupts_off() -> Result<(), Wrong> {
    cpu::halt_for_good()
}

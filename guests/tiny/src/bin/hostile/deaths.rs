// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ends of the guest's own making.

use core::arch::asm;
use core::hint::spin_loop;
use tiny::answers::Wrong;
use tiny::{cpu, interrupts};

/// An exception without a table to look its handler up in, nor the next one's: shutdown.
pub fn triple_fault() -> Result<(), Wrong> {
    interrupts::load(0, 0);
    // SAFETY: does not come back.
    unsafe { asm!("int3") };
    Err(Wrong::new("breakpoint without a table", 3, 0))
}

/// Takes its whole time for ever, and hears no interrupt.
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

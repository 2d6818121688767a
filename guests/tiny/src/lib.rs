// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared parts of the tiny guests: a Multiboot entry into 64-bit mode, a console, exceptions that can be survived, an
//! end.
//!
//! A tiny guest is one CPU (more if it wakes them: [`smp`]), all memory below 4 GiB mapped one to one, and a
//! `main` that gets the command line and returns a [`Verdict`]. It shares no code with Baton, not even register
//! definitions, so that a mistake there cannot hide behind the same mistake here.
//!
//! ```text
//! loader → boot.rs (32-bit, page tables, 64-bit) → start() → main(command line) → end(verdict)
//!                                  interrupts.rs ↗ every exception and interrupt
//! ```
#![no_std]
// A guest is the program of a machine of its own, not part of the host: to touch ports, registers and page tables is
// its whole purpose, and it can break nothing but itself.
#![allow(unsafe_code)]

pub mod answers;
pub mod apic;
pub mod attempt;
pub mod boot;
pub mod console;
pub mod counters;
pub mod cpu;
pub mod end;
pub mod interrupts;
pub mod options;
pub mod random;
pub mod smp;
pub mod timing;
pub mod user;

pub use end::Verdict;

/// Makes a function `fn(&str) -> Verdict` the guest's main.
#[macro_export]
macro_rules! main {
    ($main:path) => {
        // SAFETY: the entry code in boot.rs calls this symbol with this signature, once; no other symbol has its name.
        #[unsafe(no_mangle)]
        extern "C" fn tiny_main(information: u32) -> ! {
            $crate::boot::install(information);
            $crate::interrupts::install();
            $crate::end::end($main($crate::boot::command_line()))
        }

        #[panic_handler]
        fn panic(reason: &core::panic::PanicInfo<'_>) -> ! {
            $crate::print!("tiny: {}\n", reason);
            $crate::end::end($crate::Verdict::Wrong)
        }
    };
}

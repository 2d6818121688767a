// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls from this layer to the code above it: the only ones.
//!
//! The table is a constant of the image, bound by the linker, rather than registered by code at run time. So there is
//! no time at which an exception finds no hook: not before the first line of Rust, not in an image that starts beside
//! the one that runs, and not between an update's switch and the new image's first lines. Each image has its own table
//! at its own place. It lies in read-only memory, where a stray write cannot redirect interrupts, and is read without
//! a lock: a call costs one load and an indirect call at most, and nothing where the compiler sees the constant.

use mca::Fatal;

use super::boot::Source;
use super::trap::TrapFrame;

/// Functions of the code above `arch`. [`provide`] makes a table of them the image's.
pub struct Hooks {
    /// Runs the image, from its first safe code on: on the boot stack and the boot page tables, on one CPU, interrupts
    /// masked. The second argument is the TSC at the image's first instruction.
    pub main: fn(Source, u64) -> !,
    /// Reports an exception of the host, and ends the host. Runs on the stack of the exception's gate, interrupts
    /// masked; any lock may be held.
    pub exception: fn(&TrapFrame) -> !,
    /// Does the same for a machine check that the host does not survive.
    pub machine_check: fn(&TrapFrame, &Fatal) -> !,
    /// Stops the calling CPU, which was interrupted by [`vector::STOP`](super::trap::vector::STOP) or an NMI after the
    /// end of the host had begun. Returns on the CPU that owns the end, and on a CPU that has stopped already.
    pub stop_cpu: fn(&mut TrapFrame),
    /// Returns true if an NMI is one that the log's self-test or an update has caused. Runs in the NMI's handler: it
    /// takes no lock.
    pub claims_nmi: fn() -> bool,
    /// Handles [`vector::LOG_SELF_TEST`](super::trap::vector::LOG_SELF_TEST).
    #[cfg(feature = "faults")]
    pub log_self_test: fn(),
}

unsafe extern "Rust" {
    /// The image's table.
    #[link_name = "baton_hooks"]
    pub safe static HOOKS: Hooks;
}

/// Makes a table of [`Hooks`] the image's: once in an image, or it cannot be linked.
macro_rules! provide {
    ($hooks:expr) => {
        const _: () = {
            #[allow(unsafe_code, reason = "the name is written beside the only declaration that uses it")]
            // SAFETY: nothing else has this name, and the type is the declaration's.
            #[unsafe(export_name = "baton_hooks")]
            static PROVIDED: $crate::arch::hooks::Hooks = $hooks;
        };
    };
}

pub(crate) use provide;

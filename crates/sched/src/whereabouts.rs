// SPDX-License-Identifier: MIT OR Apache-2.0
//! On which CPU somebody is who may move while others send them messages.
//!
//! A sender leaves its message where the receiver will look, then interrupts the CPU on which the receiver is. A
//! receiver that moves says so first, and searches for messages again where it has arrived. Each writes, then reads
//! what the other writes; with a fence in between on both sides at least one of them sees the other: the receiver finds
//! the message, or the sender interrupts the new CPU. So no message waits for an interrupt that went to the old one.
//! Every interleaving with the messages themselves is tried where those are: in `vm`,
//! `machine/tests/interleavings.rs`.

use super::sync::{AtomicU32, Ordering, const_new, fence};

/// The number of a CPU.
#[derive(Debug)]
pub struct Whereabouts(AtomicU32);

impl Whereabouts {
    const_new! {
        /// On this CPU.
        (cpu: u32) {
            Self(AtomicU32::new(cpu))
        }
    }

    /// From now on there. The CPU that moves calls this first; then, there, searches for messages.
    pub fn move_to(&self, cpu: u32) {
        self.0.store(cpu, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Whom to interrupt, for a sender that has just left a message.
    #[inline]
    pub fn after_message(&self) -> u32 {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Acquire)
    }

    /// Returns where that is now, for a sender that has left no message.
    #[inline]
    pub fn now(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }
}

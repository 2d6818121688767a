// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU of a receiver that may migrate while messages are sent to it.
//!
//! A sender stores its message in the receiver's mailbox, then interrupts the CPU on which the receiver is. A receiver
//! that moves stores its new CPU first, and checks for messages again after it has arrived. Each writes, then reads
//! what the other writes, with a fence in between on both sides. So at least one of them sees the other: the receiver
//! finds the message, or the sender interrupts the new CPU. No message waits for an interrupt that went to the old one.
//! Every interleaving with the messages themselves is tested in `vm`, `machine/tests/interleavings.rs`.

use super::sync::{AtomicU32, Ordering, const_new, fence};

/// The number of the CPU that the receiver is on.
#[derive(Debug)]
pub struct CpuLocation(AtomicU32);

impl CpuLocation {
    const_new! {
        /// A receiver on this CPU.
        (cpu: u32) {
            Self(AtomicU32::new(cpu))
        }
    }

    /// Sets the CPU. A receiver that moves calls this first; then, on the new CPU, it checks for messages.
    pub fn move_to(&self, cpu: u32) {
        self.0.store(cpu, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Returns the CPU to interrupt, for a sender that has just stored a message.
    #[inline]
    pub fn after_message(&self) -> u32 {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Acquire)
    }

    /// Returns the present CPU, for a caller that has stored no message.
    #[inline]
    pub fn now(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }
}

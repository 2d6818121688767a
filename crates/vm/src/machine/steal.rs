// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sharing a real processor, as the guest learns of it: [`crate::cpu::steal_time`].

use super::{Machine, Processor};
use crate::memory::GuestMemory;

impl<M: GuestMemory> Machine<M> {
    /// Call when the processor has a real one again, before it enters the guest: others had it for `stolen_ns`
    /// nanoseconds in all so far while this one wanted to run.
    pub fn publish_steal(&self, processor: &mut Processor, stolen_ns: u64) {
        // An area outside of memory is the guest's loss: it asked for the time to be put where it can never read it.
        let _ = processor.steal.publish(&self.memory, stolen_ns);
    }

    /// Call when the processor loses the real one although it wants to run: not when it halts.
    pub fn mark_preempted(&self, processor: &Processor) {
        // As above.
        let _ = processor.steal.mark_preempted(&self.memory);
    }
}

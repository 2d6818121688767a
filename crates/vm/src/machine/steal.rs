// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sharing a real CPU, as the guest learns of it: [`crate::cpu::steal_time`].

use super::{Cpu, Machine};
use crate::memory::GuestMemory;

impl<M: GuestMemory> Machine<M> {
    /// Call when the CPU has a real one again, before it enters the guest: others had it for `stolen_ns`
    /// nanoseconds in all so far while this one wanted to run. Returns whether its TLB is to be flushed first: another
    /// CPU of the guest has asked for that instead of interrupting it.
    pub fn publish_steal(&self, cpu: &mut Cpu, stolen_ns: u64) -> bool {
        // An area outside of memory is the guest's loss: it asked for the time to be put where it can never read it.
        cpu.steal.publish(&self.memory, stolen_ns, self.is_paravirtual).unwrap_or(false)
    }

    /// Call when the CPU loses the real one although it wants to run: not when it halts.
    pub fn mark_preempted(&self, cpu: &Cpu) {
        // An area outside of memory is the guest's loss here, too.
        let _ = cpu.steal.mark_preempted(&self.memory);
    }
}

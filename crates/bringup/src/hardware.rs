// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine as bring-up uses it. The hypervisor implements it with instructions, `sim` with a model.

/// A clock that counts ticks: the time stamp counter.
pub trait Clock {
    /// Ticks, by the calling CPU's own counter.
    fn now(&mut self) -> u64;
}

/// Wakes other CPUs.
pub trait Wake: Clock {
    /// Wakes CPU `index` from its sleep ([`Kick::sleep`], [`Next::Sleep`](crate::Next::Sleep)). If it does not sleep
    /// yet, its next sleep ends at once: an interrupt that stays pending has this effect.
    fn wake(&mut self, index: u32);
}

/// The boot CPU's operations. None of them waits for another CPU.
pub trait Kick: Wake {
    /// One turn of a short waiting loop, gentle to the sibling thread and to memory.
    fn pause(&mut self);

    /// Executes nothing until another CPU [wakes](Wake::wake) this one, or until the clock shows `until`. May end
    /// early. A wake-up since its last sleep ends it at once: none is lost.
    fn sleep(&mut self, until: u64);

    /// Sends INIT to one CPU (AMD APM vol 2, section 16.5).
    fn send_init(&mut self, apic_id: u32);

    /// Sends one CPU the start-up interrupt: it begins in real mode at `page` × 4 KiB.
    fn send_startup(&mut self, apic_id: u32, page: u8);

    /// Sends INIT to all CPUs but this one.
    fn broadcast_init(&mut self);

    /// Sends the start-up interrupt to all CPUs but this one.
    fn broadcast_startup(&mut self, page: u8);

    /// Sets the warm-reset vector (CMOS byte 0Fh and 40:67h; MP specification 1.4, B.4), for CPUs that take INIT
    /// as a reset through the firmware. Called once before a batch is kicked. Nothing by default: CPUs with their
    /// APIC inside do not check it.
    fn set_reset_vector(&mut self, page: u8) {
        let _ = page;
    }

    /// Clears the warm-reset vector. Called once after the batch.
    fn clear_reset_vector(&mut self) {}

    /// Releases the parked CPU with this number by its mailbox ([`ParkSlot::release`](crate::ParkSlot::release)), and
    /// wakes it if it sleeps in a way that a write does not end. Returns `false` if its mailbox is not valid. May be
    /// called again for a CPU that did not answer.
    fn release(&mut self, index: u32) -> bool;

    /// Reports that a CPU was given up. Where it was to come by its mailbox, the mailbox must not release it any more
    /// ([`ParkSlot::condemn`](crate::ParkSlot::condemn)).
    fn given_up(&mut self, index: u32) {
        let _ = index;
    }
}

/// A woken CPU's operations.
pub trait Station: Wake {
    /// `IA32_TSC_ADJUST` (MSR 3Bh), where CPUID leaf 7 EBX bit 1 reports it.
    fn tsc_adjust(&mut self) -> Option<u64>;

    /// Writes it. Called only where [`tsc_adjust`](Self::tsc_adjust) gave a value.
    fn set_tsc_adjust(&mut self, value: u64);

    /// Releases the parked CPU with this number, as [`Kick::release`] does: parked CPUs release each other.
    fn release(&mut self, index: u32) -> bool;
}

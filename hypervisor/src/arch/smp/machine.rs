// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine as bring-up sees it ([`bringup`]'s traits).

use core::sync::atomic::Ordering;

use bringup::{Clock, Kick, Station, Wake};

use super::parked::{parked, release};
use crate::arch::percpu::PerCpu;
use crate::arch::{apic, cpu, memory, port, timer, trap};

const MSR_TSC_ADJUST: u32 = 0x3b;
/// The vector to which an old BIOS jumps after a warm reset: a far pointer (MP specification 1.4, B.4).
const WARM_RESET_VECTOR: u64 = 0x467;
/// CMOS shutdown code 0Ah: jump through the vector, no end of interrupt.
const SHUTDOWN_REGISTER: u8 = 0x0f;
const SHUTDOWN_JUMP: u8 = 0x0a;

/// The machine as bring-up sees it.
pub struct Machine {
    /// Identifiers by number.
    apic_ids: &'static [u32],
    /// The time at which the calling CPU's timer wakes it; setting it costs more than a sleep that ends too soon.
    alarm: Option<u64>,
    is_virtual: bool,
}

impl Machine {
    /// The machine as the calling CPU sees it.
    pub fn new(apic_ids: &'static [u32]) -> Self {
        Self { apic_ids, alarm: None, is_virtual: is_virtual() }
    }

    /// One turn of a short waiting loop. PAUSE is for the sibling thread of a real CPU; under a hypervisor it may
    /// end the CPU's turn, and in QEMU's emulator it takes a lock that the partner needs in order to wake.
    pub fn relax(&self) {
        if self.is_virtual { cpu::idle_a_moment() } else { cpu::pause() }
    }

    /// Halts until an interrupt, or until the time stamp counter shows `until` or a little earlier. Interrupts are
    /// masked but for the halt itself, so one that was sent since the last halt ends this one.
    pub fn sleep_until(&mut self, until: u64) {
        // It may have fired a little before its time.
        if PerCpu::current().timer_fired.swap(false, Ordering::Relaxed) {
            self.alarm = None;
        }
        if self.alarm.is_none_or(|alarm| alarm > until) {
            timer::set_alarm(until);
            self.alarm = Some(until);
        }
        cpu::wait_for_interrupt();
    }

    /// Sleeps no more. The CPU that had set the timer for something else before checks it again.
    pub fn stay_awake(&mut self) {
        if self.alarm.take().is_some() {
            timer::clear_alarm();
            PerCpu::current().timer_fired.store(true, Ordering::Relaxed);
        }
    }
}

impl Clock for Machine {
    fn now(&mut self) -> u64 {
        cpu::tsc()
    }
}

impl Wake for Machine {
    fn wake(&mut self, index: u32) {
        self.apic_ids.get(index as usize).into_iter().for_each(|&apic_id| apic::send(apic_id, trap::vector::WAKE));
    }
}

impl Kick for Machine {
    fn pause(&mut self) {
        self.relax();
    }

    fn sleep(&mut self, until: u64) {
        self.sleep_until(until);
    }

    fn send_init(&mut self, apic_id: u32) {
        apic::send_init(apic_id);
    }

    fn send_startup(&mut self, apic_id: u32, page: u8) {
        apic::send_startup(apic_id, page);
    }

    fn broadcast_init(&mut self) {
        apic::broadcast_init();
    }

    fn broadcast_startup(&mut self, page: u8) {
        apic::broadcast_startup(page);
    }

    fn set_reset_vector(&mut self, page: u8) {
        write_warm_reset(SHUTDOWN_JUMP, u32::from(page) << 24);
    }

    fn clear_reset_vector(&mut self) {
        write_warm_reset(0, 0);
    }

    fn release(&mut self, index: u32) -> bool {
        release(index)
    }

    fn given_up(&mut self, index: u32) {
        if let Some((apic_id, mailbox)) = parked(index) {
            mailbox.condemn();
            // Whatever it does, it does not come back to memory that will be others'.
            apic::send_init(apic_id);
        }
    }
}

impl Station for Machine {
    fn tsc_adjust(&mut self) -> Option<u64> {
        tsc_adjust()
    }

    fn set_tsc_adjust(&mut self, value: u64) {
        // SAFETY: called only where the register exists; it moves this CPU's counter to agree with the others.
        unsafe { cpu::write_msr(MSR_TSC_ADJUST, value) };
    }

    fn release(&mut self, index: u32) -> bool {
        release(index)
    }
}

/// Returns whether a hypervisor or an emulator is below (CPUID leaf 1 ECX bit 31, which CPUs keep clear).
pub fn is_virtual() -> bool {
    cpu::cpuid(1, 0).ecx & (1 << 31) != 0
}

/// IA32_TSC_ADJUST of the calling CPU, where it exists.
pub fn tsc_adjust() -> Option<u64> {
    let exists = cpu::cpuid(0, 0).eax >= 7 && cpu::cpuid(7, 0).ebx & (1 << 1) != 0;
    // SAFETY: CPUID reports that the register exists; reading it has no effect.
    exists.then(|| unsafe { cpu::read_msr(MSR_TSC_ADJUST) })
}

fn write_warm_reset(code: u8, vector: u32) {
    // SAFETY: the CMOS shutdown code and the BIOS data area's vector are there for this; the first MiB is in the direct
    // map wherever the memory map calls it usable, and only then is the vector written.
    unsafe {
        port::write_u8(0x70, SHUTDOWN_REGISTER);
        port::write_u8(0x71, code);
    }
    memory::write_low(WARM_RESET_VECTOR, vector);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows: one kind of exit each.

use core::hint::{black_box, spin_loop};
use core::sync::atomic::Ordering;
use tiny::interrupts::{TIMED_RAN, TIMED_VECTOR, install_timed};
use tiny::timing::{absent, row, row_of};
use tiny::{apic, console, cpu, print};

/// A port without a device: writes vanish.
const UNCLAIMED_PORT: u16 = 0x80;
const IOAPIC_SELECT: u64 = 0xfec0_0000;
const IOAPIC_WINDOW: u64 = 0xfec0_0010;
const IOAPIC_VERSION: u32 = 1;
/// Distance in ticks at which a wake-up is set: long enough to be asleep by then.
const AHEAD: u64 = 200_000;
/// Longest wait for an interrupt before it counts as lost, in polls.
const PATIENCE: u32 = 10_000_000;

/// Prints every row; false if an interrupt got lost.
pub fn all(repetitions: usize) -> bool {
    row("empty", repetitions, || ());
    row("cpuid", repetitions, || {
        black_box(cpu::cpuid(black_box(0)));
    });
    row("port", repetitions, || cpu::outb(UNCLAIMED_PORT, 0));
    row("port_in", repetitions, || {
        black_box(cpu::inb(console::LINE_STATUS));
    });
    cpu::write_memory(IOAPIC_SELECT, IOAPIC_VERSION);
    row("mmio", repetitions, || {
        black_box(cpu::read_memory(IOAPIC_WINDOW));
    });
    if !apic::is_x2apic() {
        ["msr", "self_ipi", "hlt_wake"].into_iter().for_each(|name| absent(name, "no x2APIC"));
        return true;
    }
    row("msr", repetitions, || {
        black_box(cpu::read_msr(apic::FIRST_MSR + apic::Register::Identifier as u32));
    });
    install_timed();
    self_ipi(repetitions) && hlt_wake(repetitions)
}

/// From the write that sends the interrupt to the first instruction after its handler, the handler's end of interrupt
/// (a second exit where that is not the CPU's own) included.
fn self_ipi(repetitions: usize) -> bool {
    let mut lost = 0;
    cpu::interrupts_on();
    row("self_ipi", repetitions, || {
        TIMED_RAN.store(0, Ordering::Relaxed);
        cpu::write_msr(apic::SELF_IPI_MSR, TIMED_VECTOR.into());
        let ran = (0..PATIENCE).any(|_| {
            spin_loop();
            TIMED_RAN.load(Ordering::Relaxed) != 0
        });
        lost += u32::from(!ran);
    });
    cpu::interrupts_off();
    report_lost("self_ipi", lost)
}

/// From the moment the timer was set for to the first instruction after HLT and the handler.
fn hlt_wake(repetitions: usize) -> bool {
    const TSC_DEADLINE_MODE: u32 = 2 << 17;
    if cpu::cpuid(1)[2] & 1 << 24 == 0 {
        absent("hlt_wake", "no TSC-deadline timer");
        return true;
    }
    apic::write(apic::Register::Timer, TSC_DEADLINE_MODE | u32::from(TIMED_VECTOR));
    let mut lost = 0;
    row_of("hlt_wake", repetitions, || {
        TIMED_RAN.store(0, Ordering::Relaxed);
        let deadline = cpu::ticks() + AHEAD;
        cpu::write_msr(apic::TSC_DEADLINE_MSR, deadline);
        cpu::sleep_until_interrupt();
        let now = cpu::ticks();
        lost += u32::from(TIMED_RAN.load(Ordering::Relaxed) == 0);
        now.saturating_sub(deadline)
    });
    report_lost("hlt_wake", lost)
}

fn report_lost(name: &str, lost: u32) -> bool {
    if lost != 0 {
        print!("exits: {name} WRONG: {lost} interrupts never came\n");
    }
    lost == 0
}

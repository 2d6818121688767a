// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages between local APICs, their errors, and the modes that not every CPU has (AMD APM vol. 2, chapter 16; Intel
//! SDM vol. 3, sections 11.5 and 11.12).

use tiny::answers::{Wrong, expect, expect_that};
use tiny::apic::{self, Register};
use tiny::{cpu, interrupts, smp};

use crate::interrupts::let_in_until;

const VECTOR: u8 = 0x81;
const FLAT: u32 = u32::MAX;
const MEMBER: u32 = 0x40;

/// Sends, and waits for an interrupt; returns the number of interrupts.
fn came_of(send: impl FnOnce()) -> u64 {
    interrupts::hook(VECTOR, |_| ());
    let before = interrupts::count(VECTOR);
    send();
    let_in_until(|| interrupts::count(VECTOR) != before);
    (interrupts::count(VECTOR) - before).into()
}

/// A logical destination is one bit of eight, for fixed and lowest-priority interrupts.
pub fn logical_destination() -> Result<(), Wrong> {
    const LOWEST_PRIORITY: u32 = 1 << 8;
    apic::write(Register::DestinationFormat, FLAT);
    apic::write(Register::LogicalDestination, MEMBER << 24);
    for mode in [0, LOWEST_PRIORITY] {
        let command = apic::LOGICAL | mode | u32::from(VECTOR);
        expect("interrupts for", MEMBER.into(), came_of(|| apic::send(MEMBER | 1, command)), 1)?;
        expect("interrupts for", 1, came_of(|| apic::send(1, command)), 0)?;
    }
    Ok(())
}

/// INIT and a start-up interrupt start another CPU, and start it again.
pub fn start_up() -> Result<(), Wrong> {
    for times in 1..=2 {
        expect("start of CPU", 1, smp::start(2).into(), 1)?;
        expect("starts of CPU", 1, smp::starts(1).into(), times)?;
    }
    Ok(())
}

/// A register that there is not is an error.
pub fn error_status() -> Result<(), Wrong> {
    const ABSENT: u64 = 0x40;
    const ILLEGAL_REGISTER: u32 = 1 << 7;
    apic::write(Register::ErrorStatus, 0);
    cpu::write_memory(apic::PAGE + ABSENT, 0);
    apic::write(Register::ErrorStatus, 0);
    expect("errors after register", ABSENT, apic::read(Register::ErrorStatus).into(), ILLEGAL_REGISTER.into())
}

/// The timer fires once the time stamp counter has reached the deadline, and not before.
pub fn tsc_deadline() -> Result<(), Wrong> {
    const DEADLINE: u32 = 2 << 17;
    const TICKS: u64 = 1_000_000;
    apic::write(Register::Timer, DEADLINE | u32::from(VECTOR));
    let deadline = cpu::ticks() + TICKS;
    expect("interrupts at the deadline", TICKS, came_of(|| cpu::write_msr(apic::TSC_DEADLINE_MSR, deadline)), 1)?;
    let now = cpu::ticks();
    expect_that("interrupt for", deadline, now, now >= deadline)?;
    expect("deadline behind", deadline, cpu::read_msr(apic::TSC_DEADLINE_MSR), 0)
}

/// Registers are MSRs, with a command of 64 bits and one for interrupts to oneself. The APIC stays in this mode.
pub fn x2apic() -> Result<(), Wrong> {
    apic::enable();
    expect("identifier in x2APIC mode", 0, apic::read(Register::Identifier).into(), 0)?;
    expect("self-IPIs", 1, came_of(|| cpu::write_msr(apic::SELF_IPI_MSR, VECTOR.into())), 1)?;
    expect("interrupts by command", 1, came_of(|| apic::send(0, VECTOR.into())), 1)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs that are taken offline and online, at any moment, and more interrupts than any CPU can take.

use core::sync::atomic::{AtomicU32, Ordering};
use tiny::interrupts::count_of;
use tiny::random::Random;
use tiny::{apic, cpu, smp};

use crate::answers::{Wrong, expect, quiet};
use crate::destinations::everyone_answers;

const VECTOR: u8 = 0x52;
const NON_MASKABLE: u8 = 2;
const LAST: u8 = 0x53;
const SHORTHAND_OTHERS: u32 = 3 << 18;
const ROUNDS: u64 = 2_000;

/// INIT stops a CPU: interrupts and NMIs to it are lost, and the next start-up interrupt starts it, once.
pub fn a_stopped_cpu_receives_nothing(cpus: usize) -> Result<(), Wrong> {
    for at in 1..cpus {
        let starts = smp::starts(at);
        let before = [VECTOR, NON_MASKABLE].map(|vector| count_of(at, vector));
        smp::send_init(at);
        quiet();
        apic::send(at as u32, VECTOR.into());
        apic::send(at as u32, apic::NMI);
        quiet();
        expect("starts after INIT of CPU", at as u64, (smp::starts(at) - starts).into(), 0)?;
        smp::send_startup(at);
        smp::wait_until(|| smp::starts(at) != starts);
        quiet();
        for (vector, before) in [VECTOR, NON_MASKABLE].into_iter().zip(before) {
            expect("interrupts while off of CPU", at as u64, (count_of(at, vector) - before).into(), 0)?;
        }
        expect("starts of CPU", at as u64, (smp::starts(at) - starts).into(), 1)?;
    }
    everyone_answers(cpus)
}

/// A start-up interrupt to a CPU that runs changes nothing.
pub fn a_running_cpu_ignores_startup(cpus: usize) -> Result<(), Wrong> {
    for at in 1..cpus {
        let starts = smp::starts(at);
        (0..10).for_each(|_| smp::send_startup(at));
        quiet();
        expect("starts while it runs of CPU", at as u64, (smp::starts(at) - starts).into(), 0)?;
    }
    everyone_answers(cpus)
}

/// INITs, start-ups and interrupts without order to all others. Afterwards each can be started, and answers. No NMIs:
/// one that comes before a CPU has its interrupt table ends the machine, and rightly so.
pub fn of_inits(cpus: usize) -> Result<(), Wrong> {
    if cpus == 1 {
        return Ok(());
    }
    let mut random = Random::new(29);
    for _ in 0..ROUNDS {
        let at = 1 + random.draw() as usize % (cpus - 1);
        match random.draw() % 5 {
            0 => smp::wake(at),
            1 => smp::send_init(at),
            2 => smp::send_startup(at),
            3 => apic::send(0, SHORTHAND_OTHERS | apic::INIT),
            _ => apic::send(at as u32, VECTOR.into()),
        }
    }
    expect("CPUs that start again", cpus as u64, smp::start(cpus).into(), 1)?;
    everyone_answers(cpus)
}

/// All CPUs send all others interrupts, as fast as they can; the last one of each comes.
pub fn of_interrupts(cpus: usize) -> Result<(), Wrong> {
    static STORMED: AtomicU32 = AtomicU32::new(0);
    STORMED.store(0, Ordering::Release);
    let before: [u32; smp::MOST] = core::array::from_fn(|at| count_of(at, LAST));
    let storm = |_| {
        cpu::interrupts_on();
        for round in 0..ROUNDS {
            let command = if round % 8 == 7 { apic::NMI } else { u32::from(VECTOR) };
            apic::send(0, SHORTHAND_OTHERS | command);
        }
        STORMED.fetch_add(1, Ordering::AcqRel);
        cpu::interrupts_off();
    };
    (1..cpus).for_each(|at| smp::give(at, storm));
    storm(0);
    let ended = smp::wait_until(|| (1..cpus).all(smp::is_done));
    expect("storms that ended of", STORMED.load(Ordering::Acquire).into(), ended.into(), 1)?;
    for (at, before) in before.into_iter().enumerate().take(cpus).skip(1) {
        apic::send(at as u32, LAST.into());
        smp::wait_until(|| count_of(at, LAST) != before);
        expect("interrupts after the storm to CPU", at as u64, (count_of(at, LAST) - before).into(), 1)?;
    }
    everyone_answers(cpus)
}

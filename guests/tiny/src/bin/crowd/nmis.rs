// SPDX-License-Identifier: MIT OR Apache-2.0
//! Non-maskable interrupts: to each, and one at a time (AMD APM vol. 2, section 8.2.3; Intel SDM vol. 3,
//! section 7.7.1).

use core::hint::spin_loop;
use core::sync::atomic::{AtomicU32, Ordering};
use tiny::interrupts::{count_of, hook};
use tiny::{apic, cpu, smp};

use crate::answers::{Wrong, all, expect, reaches, wait_with_interrupts};

const NON_MASKABLE: u8 = 2;
const SHORTHAND_OTHERS: u32 = 3 << 18;
/// Wait of a handler in polls, for the next NMI to come into it.
const INVITATION: u32 = 20_000;

static DEPTH: AtomicU32 = AtomicU32::new(0);
static DEEPEST: AtomicU32 = AtomicU32::new(0);
/// Number of NMIs that the handler is still to send itself.
static TO_SEND: AtomicU32 = AtomicU32::new(0);

/// By identifier and by shorthand, whether interrupts are on or off.
pub fn each_gets_its_own(cpus: usize) -> Result<(), Wrong> {
    // The vector of an NMI's command is ignored.
    let reaches = |what, destination, command, wanted| {
        let vector = u32::from(NON_MASKABLE);
        reaches(what, NON_MASKABLE, destination, command & !vector, wanted)
    };
    for at in 0..cpus {
        reaches("NMI to CPU", at as u32, apic::NMI, 1 << at)?;
    }
    reaches("NMI by the shorthand for others", 0, apic::NMI | SHORTHAND_OTHERS, all(cpus) & !1)?;
    cpu::interrupts_off();
    let before = count_of(0, NON_MASKABLE);
    apic::send_self_nmi();
    smp::wait_until(|| count_of(0, NON_MASKABLE) != before);
    expect("NMIs with interrupts off on CPU", 0, (count_of(0, NON_MASKABLE) - before).into(), 1)
}

/// A handler sends its own CPU the next NMI, and gives it time: it comes when the handler has returned, at once.
pub fn none_comes_into_a_handler(cpus: usize) -> Result<(), Wrong> {
    const ROUNDS: u32 = 20;
    hook(NON_MASKABLE, |_| {
        DEEPEST.fetch_max(DEPTH.fetch_add(1, Ordering::AcqRel) + 1, Ordering::AcqRel);
        if TO_SEND.load(Ordering::Acquire) > 0 {
            TO_SEND.fetch_sub(1, Ordering::AcqRel);
            // Two are one: the second finds the first still waiting.
            apic::send_self_nmi();
            apic::send_self_nmi();
            (0..INVITATION).for_each(|_| spin_loop());
        }
        DEPTH.fetch_sub(1, Ordering::AcqRel);
    });
    let result = (0..cpus).try_for_each(|at| {
        let before = count_of(at, NON_MASKABLE);
        DEEPEST.store(0, Ordering::Release);
        TO_SEND.store(ROUNDS, Ordering::Release);
        apic::send(at as u32, apic::NMI);
        wait_with_interrupts(|| count_of(at, NON_MASKABLE) - before > ROUNDS);
        expect("NMIs of CPU", at as u64, (count_of(at, NON_MASKABLE) - before).into(), (ROUNDS + 1).into())?;
        expect("depth of NMIs on CPU", at as u64, DEEPEST.load(Ordering::Acquire).into(), 1)
    });
    hook(NON_MASKABLE, |_| {});
    result
}

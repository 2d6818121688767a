// SPDX-License-Identifier: MIT OR Apache-2.0
//! Non-maskable interrupts (AMD APM vol. 2, sections 8.2.3 and 8.9.4).

use core::hint::spin_loop;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use tiny::answers::{Wrong, expect};
use tiny::{apic, interrupts};

const NMI: u8 = 2;
const PATIENCE: u32 = 200_000;

static COUNT: AtomicU32 = AtomicU32::new(0);
static DEPTH: AtomicU32 = AtomicU32::new(0);
static DEEPEST: AtomicU32 = AtomicU32::new(0);
static AT: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

fn note(rip: u64) {
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    if let Some(at) = AT.get(number as usize) {
        at.store(rip, Ordering::Relaxed);
    }
}

fn note_and_send_two(rip: u64) {
    note(rip);
    DEEPEST.fetch_max(DEPTH.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
    if COUNT.load(Ordering::Relaxed) == 1 {
        apic::send_self_nmi();
        apic::send_self_nmi();
        wait();
    }
    DEPTH.fetch_sub(1, Ordering::Relaxed);
}

fn wait() {
    (0..PATIENCE).for_each(|_| spin_loop());
}

/// One that is sent comes once, with interrupts off.
pub fn once() -> Result<(), Wrong> {
    COUNT.store(0, Ordering::Relaxed);
    interrupts::hook(NMI, note);
    apic::send_self_nmi();
    wait();
    expect("NMIs of", 1, COUNT.load(Ordering::Relaxed).into(), 1)
}

/// Two that come while the handler runs are one, which waits for its IRET and comes right behind it: it interrupts the
/// very instruction that the first one did.
pub fn blocking() -> Result<(), Wrong> {
    COUNT.store(0, Ordering::Relaxed);
    interrupts::hook(NMI, note_and_send_two);
    apic::send_self_nmi();
    wait();
    expect("NMIs of", 3, COUNT.load(Ordering::Relaxed).into(), 2)?;
    expect("NMIs in one another", 0, DEEPEST.load(Ordering::Relaxed).into(), 1)?;
    let first = AT[0].load(Ordering::Relaxed);
    expect("NMI at", first, AT[1].load(Ordering::Relaxed), first)
}

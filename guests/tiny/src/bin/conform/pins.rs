// SPDX-License-Identifier: MIT OR Apache-2.0
//! The I/O APIC (Intel 82093AA, section 3.2), by the pin of COM1, whose transmitter is always empty.

use core::sync::atomic::{AtomicU32, Ordering};
use tiny::answers::{Wrong, expect};
use tiny::cpu::{inb, outb, read_memory, write_memory};
use tiny::interrupts;

use crate::interrupts::{TMR, bit, let_in_until};

const SELECT: u64 = 0xfec0_0000;
const WINDOW: u64 = 0xfec0_0010;
const UNUSED_PIN: u32 = 20;
const COM1_PIN: u32 = 4;
const INTERRUPT_ENABLE: u16 = 0x3f9;
const INTERRUPT_IDENTITY: u16 = 0x3fa;
const MODEM_CONTROL: u16 = 0x3fc;
const TRANSMITTER_EMPTY: u8 = 2;
const VECTOR: u8 = 0x71;
const PENDING: u32 = 1 << 12;
const LOGICAL: u32 = 1 << 11;
const LOW_ACTIVE: u32 = 1 << 13;
const REMOTE_IRR: u32 = 1 << 14;
const LEVEL: u32 = 1 << 15;
const MASKED: u32 = 1 << 16;

fn entry(pin: u32) -> u32 {
    write_memory(SELECT, 0x10 + 2 * pin);
    read_memory(WINDOW)
}

/// With the first CPU as its destination.
fn set_entry(pin: u32, low: u32) {
    for (half, value) in [(1, 0), (0, low)] {
        write_memory(SELECT, 0x10 + 2 * pin + half);
        write_memory(WINDOW, value);
    }
}

/// The pin's edge, and its level from then on.
fn raise() {
    outb(MODEM_CONTROL, 0xb);
    outb(INTERRUPT_ENABLE, TRANSMITTER_EMPTY);
}

fn lower() {
    outb(INTERRUPT_ENABLE, 0);
    inb(INTERRUPT_IDENTITY);
}

/// An entry keeps what is written, but for the two bits that are the chip's.
pub fn entry_is_kept() -> Result<(), Wrong> {
    let kept = MASKED | LEVEL | LOW_ACTIVE | LOGICAL | u32::from(VECTOR);
    set_entry(UNUSED_PIN, kept | PENDING | REMOTE_IRR);
    let found = entry(UNUSED_PIN);
    set_entry(UNUSED_PIN, MASKED);
    expect("redirection entry", kept.into(), found.into(), kept.into())
}

/// An edge is one interrupt; one that comes while the entry is masked is none.
pub fn edge() -> Result<(), Wrong> {
    interrupts::hook(VECTOR, |_| ());
    let before = interrupts::count(VECTOR);
    let came = || interrupts::count(VECTOR) - before;
    set_entry(COM1_PIN, MASKED | u32::from(VECTOR));
    raise();
    let_in_until(|| came() != 0);
    expect("interrupts of a masked pin", COM1_PIN.into(), came().into(), 0)?;
    lower();
    set_entry(COM1_PIN, VECTOR.into());
    raise();
    let_in_until(|| came() != 0);
    let_in_until(|| came() > 1);
    lower();
    set_entry(COM1_PIN, MASKED);
    expect("interrupts of an edge of pin", COM1_PIN.into(), came().into(), 1)
}

static SEEN: AtomicU32 = AtomicU32::new(0);

/// Notes TMR and remote IRR in service, and lowers the pin the second time.
fn in_service(_: u64) {
    let remote_irr = u32::from(entry(COM1_PIN) & REMOTE_IRR != 0);
    let seen = SEEN.load(Ordering::Relaxed);
    SEEN.store(seen << 2 | bit(TMR, VECTOR) << 1 | remote_irr, Ordering::Relaxed);
    if seen != 0 {
        lower();
    }
}

/// A level is an interrupt after each end of interrupt, until the pin is low.
pub fn level() -> Result<(), Wrong> {
    interrupts::hook(VECTOR, in_service);
    let before = interrupts::count(VECTOR);
    let came = || interrupts::count(VECTOR) - before;
    set_entry(COM1_PIN, LEVEL | u32::from(VECTOR));
    raise();
    let_in_until(|| came() > 1);
    let_in_until(|| came() > 2);
    let after = entry(COM1_PIN);
    set_entry(COM1_PIN, MASKED);
    expect("interrupts of a level of pin", COM1_PIN.into(), came().into(), 2)?;
    expect("TMR and remote IRR in service, twice", VECTOR.into(), SEEN.load(Ordering::Relaxed).into(), 0b1111)?;
    expect("remote IRR behind the end of", VECTOR.into(), (after & REMOTE_IRR).into(), 0)
}

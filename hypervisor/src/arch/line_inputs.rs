// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inputs of I/O APICs to which INTx lines of guests' PCI functions lead. They are level-triggered: the handler masks
//! one that has interrupted, so that it cannot interrupt again before its guest has ended the interrupt.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::ioapic::IoApic;
use super::percpu::{BOOT_CPU, PerCpu};

/// Inputs that functions have at most.
pub const MOST: usize = 16;

const USED: u32 = 1 << 31;

/// The boot CPU's vector, I/O APIC and input of each; 0 for none.
static INPUTS: [AtomicU32; MOST] = [const { AtomicU32::new(0) }; MOST];

/// A bit for each vector that an input sends, so that messages, which most interrupts are, cost the handler one load.
static VECTORS: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

/// An I/O APIC's number, and one of its inputs.
pub type Input = (usize, u32);

const fn word(vector: u8, (chip, input): Input) -> u32 {
    USED | (chip as u32 & 0xff) << 16 | (input & 0xff) << 8 | vector as u32
}

/// An input sends this vector to the boot CPU from here on. Nothing where there are too many.
pub fn add(vector: u8, input: Input) {
    let is_free = |place: &&AtomicU32| {
        place.compare_exchange(0, word(vector, input), Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    let _ = INPUTS.iter().find(is_free);
    let (bits, bit) = bit_of(vector);
    bits.fetch_or(bit, Ordering::AcqRel);
}

/// An input does so no more; no other sends the vector.
pub fn remove(vector: u8, input: Input) {
    let (bits, bit) = bit_of(vector);
    bits.fetch_and(!bit, Ordering::AcqRel);
    for place in &INPUTS {
        let _ = place.compare_exchange(word(vector, input), 0, Ordering::AcqRel, Ordering::Relaxed);
    }
}

/// In the handler, before it ends the interrupt: masks the input that sends this vector, if one does.
pub fn mask(vector: u8) {
    let (bits, bit) = bit_of(vector);
    if bits.load(Ordering::Acquire) & bit == 0 || PerCpu::current().index != BOOT_CPU {
        return;
    }
    for place in &INPUTS {
        let word = place.load(Ordering::Acquire);
        if word & USED != 0 && word as u8 == vector {
            IoApic::mapped((word >> 16 & 0xff) as usize).mask(word >> 8 & 0xff);
        }
    }
}

fn bit_of(vector: u8) -> (&'static AtomicU64, u64) {
    (&VECTORS[usize::from(vector / 64)], 1 << (vector % 64))
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The switch pages' GDT and IDT, and the values of GDTR and IDTR.

use units::{PAGE_BYTES, PhysAddr};

use super::code::{code_at, switch_nmi};
use super::layout::DESCRIPTOR_PAGE;
use crate::arch::address::{DIRECT_MAP, SWITCH_PAGES};

pub(super) const GDT: [u64; 3] = [0, 0x00af_9b00_0000_ffff, 0x00cf_9300_0000_ffff];
const GDTR_OFFSET: u64 = 32;
const IDTR_OFFSET: u64 = GDTR_OFFSET + 16;
const IDT_OFFSET: u64 = 64;
const NMI_VECTOR: u64 = 2;

/// Returns where the registers' values are seen.
pub(super) fn descriptors() -> u64 {
    SWITCH_PAGES + DESCRIPTOR_PAGE * PAGE_BYTES + GDTR_OFFSET
}

/// Writes GDT, one gate for the non-maskable interrupt, and what the registers are loaded with, for the switch pages at
/// `start`.
///
/// # Safety
/// The switch pages' second page is the caller's own, and nothing uses it yet.
pub(super) unsafe fn write(start: PhysAddr) {
    const PRESENT_INTERRUPT_GATE: u64 = 0x8e00 << 32;
    const CODE_SELECTOR: u64 = 8 << 16;
    let page = DIRECT_MAP + start.0 + DESCRIPTOR_PAGE * PAGE_BYTES;
    let handler = code_at(&raw const switch_nmi);
    let gate = (handler & 0xffff) | CODE_SELECTOR | PRESENT_INTERRUPT_GATE | (handler & 0xffff_0000) << 32;
    let nmi = IDT_OFFSET + NMI_VECTOR * 16;
    let idt_limit = (NMI_VECTOR + 1) * 16 - 1;
    let register = |limit: u64, base: u64| [(limit | base << 16), base >> 48];
    let [gdtr, gdtr_end] = register(size_of_val(&GDT) as u64 - 1, descriptors() - GDTR_OFFSET);
    let [idtr, idtr_end] = register(idt_limit, descriptors() - GDTR_OFFSET + IDT_OFFSET);
    let words = [
        (0, GDT[0]),
        (8, GDT[1]),
        (16, GDT[2]),
        (GDTR_OFFSET, gdtr),
        (GDTR_OFFSET + 8, gdtr_end),
        (IDTR_OFFSET, idtr),
        (IDTR_OFFSET + 8, idtr_end),
        (nmi, gate),
        (nmi + 8, handler >> 32),
    ];
    for (offset, word) in words {
        // SAFETY: the caller's promise; the offsets are in the page, aligned.
        unsafe { ((page + offset) as *mut u64).write(word) };
    }
}

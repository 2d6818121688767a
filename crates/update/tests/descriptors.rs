// SPDX-License-Identifier: MIT OR Apache-2.0
//! A page's descriptors as a CPU reads them: byte by byte, by the manual's figures and not by the code's shifts.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use update::descriptors::{OwnStacks, Placement};
use update::trial::{
    BUSY_TICKS, CHECK_SLOT, CHECK_STACK, FIRST_STACK, NMI_SLOT, NMI_STACK, PAGE_BYTES, Stamp, TRAP_SLOT, TRAP_STACK,
    TrialPage, WORK_STACK,
};

/// Each byte of it is another one.
const PAGE: u64 = 0xfedc_ba98_7654_3000;
const IDT: u64 = 0x1234_5678_9abc_d000;
/// Null, a code and a data segment.
const SEGMENTS: [u64; 3] = [0, 0x00af_9b00_0000_ffff, 0x00cf_9300_0000_ffff];
const OWN: OwnStacks = OwnStacks { nmi: 0xffff_8000_0000_1000, machine_check: 0xffff_8000_0000_2000 };

/// Returns a page of ones, prepared.
fn page(own: Option<OwnStacks>) -> Box<TrialPage> {
    let page = Box::new(TrialPage::zeroed());
    for word in page.tss.iter().chain(&page.gdt).chain(&page.gdtr).chain(&page.idtr).chain(&page.stamps) {
        word.store(u64::MAX, Relaxed);
    }
    for word in [&page.reason_bytes, &page.pending, &page.wait_step, &page.waits, &page.hits] {
        word.store(u64::MAX, Relaxed);
    }
    page.prepare(&Placement { page: PAGE, idt: IDT, gdt: SEGMENTS }, own);
    page
}

fn bytes(words: &[AtomicU64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.load(Relaxed).to_le_bytes()).collect()
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// AMD APM vol. 2, figure 4-22: a system segment's descriptor of 16 bytes.
#[test]
fn the_gdt_describes_the_pages_tss() {
    let page = page(None);
    let gdt = bytes(&page.gdt);
    let segments: Vec<u64> = gdt[..24].chunks(8).map(number).collect();
    assert_eq!(segments, SEGMENTS);
    let tss = &gdt[24..40];
    let base = [&tss[2..5], &tss[7..12]].concat();
    let at = PAGE + std::mem::offset_of!(TrialPage, tss) as u64;
    assert_eq!(number(&base), at, "base");
    assert_eq!((number(&tss[..2]), tss[5], tss[6]), (103, 0x89, 0), "limit, present TSS, no flags");
    assert_eq!(number(&tss[12..]), 0);
}

/// AMD APM vol. 2, figure 12-8: the 64-bit TSS.
#[test]
fn the_tss_names_a_stack_for_each_gate_and_no_io_map() {
    let tss = bytes(&page(None).tss);
    let stack = |slot: usize| number(&tss[36 + 8 * (slot - 1)..][..8]);
    assert_eq!(stack(NMI_SLOT), PAGE + NMI_STACK as u64);
    assert_eq!(stack(CHECK_SLOT), PAGE + CHECK_STACK as u64);
    assert_eq!(stack(TRAP_SLOT), PAGE + TRAP_STACK as u64);
    assert_eq!([2, 3, 5, 7].map(stack), [0; 4]);
    assert_eq!(number(&tss[..36]), 0);
    assert_eq!(number(&tss[102..104]), 104, "the I/O map is behind the limit");
}

#[test]
fn an_images_own_stacks_are_named_beside_the_pages() {
    let tss = bytes(&page(Some(OWN)).tss);
    let stack = |slot: usize| number(&tss[36 + 8 * (slot - 1)..][..8]);
    assert_eq!([2, 3].map(stack), [OWN.nmi, OWN.machine_check]);
    assert_eq!(stack(NMI_SLOT), PAGE + NMI_STACK as u64);
}

/// AMD APM vol. 2, section 4.6: a limit in two bytes, and a base in the eight behind them.
#[test]
fn gdtr_and_idtr_have_limit_and_base() {
    let page = page(None);
    for (register, base, limit) in [(&page.gdtr, PAGE, 5 * 8 - 1), (&page.idtr, IDT, 256 * 16 - 1)] {
        let register = bytes(register);
        assert_eq!((number(&register[..2]), number(&register[2..10])), (limit, base));
        assert_eq!(number(&register[10..]), 0);
    }
}

#[test]
fn nothing_of_an_earlier_trial_is_left() {
    let page = page(None);
    assert!(page.stamps.iter().all(|word| word.load(Relaxed) == 0));
    let words = [&page.reason_bytes, &page.pending, &page.wait_step, &page.waits, &page.hits];
    assert!(words.iter().all(|word| word.load(Relaxed) == 0));
}

#[test]
fn the_stacks_part_the_end_of_the_page() {
    assert_eq!([NMI_STACK, CHECK_STACK, WORK_STACK, FIRST_STACK], [PAGE_BYTES, 3328, 2560, 1792]);
}

#[test]
fn each_stamp_has_a_place_of_its_own() {
    let page = page(None);
    let stamps =
        [Stamp::Left, Stamp::Saved, Stamp::Gone, Stamp::Arrived, Stamp::Restored, Stamp::Committed, Stamp::Entered];
    stamps.iter().zip(1..).for_each(|(stamp, ticks)| page.stamp(*stamp, ticks));
    let noted: Vec<u64> = page.stamps.iter().map(|word| word.load(Relaxed)).collect();
    assert_eq!(noted, [1, 2, 3, 4, 5, 6, 7, 0]);
    assert_eq!(noted[BUSY_TICKS], 0);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
use core::mem::offset_of;
use std::boxed::Box;

use super::*;

fn page() -> Box<TrialPage> {
    let mut page = Box::new(TrialPage::zeroed());
    *page.reason_bytes.get_mut() = u64::MAX;
    page
}

#[test]
fn the_layout_changes_only_with_its_version() {
    let offsets = [
        offset_of!(TrialPage, tss),
        offset_of!(TrialPage, gdtr),
        offset_of!(TrialPage, old),
        offset_of!(TrialPage, new),
        offset_of!(TrialPage, cause),
        offset_of!(TrialPage, first),
        offset_of!(TrialPage, reason_bytes),
        offset_of!(TrialPage, reason),
    ];
    assert_eq!((VERSION, offsets), (2, [40, 144, 208, 240, 272, 320, 560, 568]));
}

#[test]
fn the_flags_of_an_nmi_are_where_the_cpu_pushes_them() {
    let page = page();
    let pushed = [0x1234, 0x8, 0x202, 0x7000, 0x10];
    page.first.far.iter().zip(pushed).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    assert!(!page.were_interrupts_masked());
    page.first.far[2].store(0x2, Ordering::Relaxed);
    assert!(page.were_interrupts_masked());
}

/// Returns the stacks of the TSS as a CPU reads them: seven unaligned quadwords from offset 36 on.
fn interrupt_stacks(page: &TrialPage) -> [u64; 7] {
    let bytes: std::vec::Vec<u8> =
        page.tss.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
    core::array::from_fn(|slot| {
        u64::from_le_bytes(bytes[36 + slot * 8..44 + slot * 8].try_into().expect("eight bytes"))
    })
}

#[test]
fn each_interrupt_stack_is_where_the_cpu_expects_it_and_changes_no_other() {
    let page = page();
    page.tss[12].store(104 << 48, Ordering::Relaxed);
    let tops: [u64; 7] = core::array::from_fn(|slot| 0xffff_e000_1234_5000 + slot as u64 * 0x1_0000_0010);
    for slot in [4, 1, 7, 2, 6, 3, 5] {
        page.set_interrupt_stack(slot, u64::MAX);
        page.set_interrupt_stack(slot, tops[slot - 1]);
    }
    assert_eq!(interrupt_stacks(&page), tops);
    [0, 8, usize::MAX].iter().for_each(|slot| page.set_interrupt_stack(*slot, 1));
    assert_eq!(interrupt_stacks(&page), tops);
    assert_eq!(page.tss[12].load(Ordering::Relaxed) >> 48, 104);
}

#[test]
fn traps_push_the_new_images_registers_where_they_are_resumed_from() {
    // SS, RSP, RFLAGS, CS, RIP, an error code, a stub's return address, fifteen registers.
    assert_eq!(TRAP_STACK - 22 * 8, offset_of!(TrialPage, first));
}

#[test]
fn the_reason_is_read_as_it_was_written() {
    let page = page();
    page.set_reason(b"no memory");
    assert_eq!(page.reason(&mut [0; REASON_BYTES]), b"no memory");
}

#[test]
fn a_reason_that_is_too_long_is_cut() {
    let page = page();
    page.set_reason(&[7; REASON_BYTES + 9]);
    assert_eq!(page.reason(&mut [0; REASON_BYTES]), &[7; REASON_BYTES]);
}

#[test]
fn an_impossible_length_is_not_believed() {
    assert_eq!(page().reason(&mut [0; REASON_BYTES]).len(), REASON_BYTES);
}

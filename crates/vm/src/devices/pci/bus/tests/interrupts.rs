// SPDX-License-Identifier: MIT OR Apache-2.0
//! MSI and MSI-X, from a function's registers to messages.

use super::*;
use crate::devices::{DeliveryMode, Destination};

const BAR: u64 = 0xc000_0000;
const TABLE: u64 = BAR + Probe::TABLE as u64;
const PENDING: u64 = BAR + Probe::PENDING as u64;
const RAISE: u64 = BAR + 4;
const MSI: u64 = 0x40;
const MSIX: u64 = 0x58;
const ENABLED: u32 = 1 << 31;
const FUNCTION_MASKED: u32 = 1 << 30;

fn lab() -> Lab {
    let mut lab = Lab::with_probes(1);
    lab.set_config(0x10, BAR as u32);
    lab.set_config(4, 6);
    lab
}

/// With MSI-X enabled: vector n of the function is vector 0x30 + n of CPU n, not masked.
fn with_msix() -> Lab {
    let mut lab = lab();
    for vector in 0..u64::from(Probe::VECTORS) {
        set(&mut lab, TABLE + 16 * vector, 0xfee0_0000 | vector << 12);
        set(&mut lab, TABLE + 16 * vector + 8, 0x30 + vector);
        set(&mut lab, TABLE + 16 * vector + 12, 0);
    }
    lab.set_config(MSIX, ENABLED);
    lab
}

fn set(lab: &mut Lab, address: u64, value: u64) {
    assert!(lab.write(Space::Memory, address, DWORD, value));
}

fn get(lab: &mut Lab, address: u64) -> u64 {
    lab.read(Space::Memory, address, DWORD).expect("it is decoded")
}

/// The vectors of the messages that were sent.
fn sent(lab: &mut Lab) -> Vec<u8> {
    lab.world.outputs.take_messages().map(|message| message.vector).collect()
}

#[test]
fn a_vector_is_a_message_to_the_cpu_in_its_entry() {
    let mut lab = with_msix();
    set(&mut lab, RAISE, 3);
    let message = lab.world.outputs.take_messages().next().expect("a message");
    assert_eq!((message.destination, message.vector), (Destination::Physical(3), 0x33));
    assert_eq!((message.mode, message.is_level), (DeliveryMode::Fixed, false));
    assert_eq!(lab.config(MSIX) >> 16, 0x8027);
}

#[test]
fn a_masked_vector_waits_until_it_is_unmasked() {
    let mut lab = with_msix();
    set(&mut lab, TABLE + 12, 1);
    (0..3).for_each(|_| set(&mut lab, RAISE, 0));
    assert_eq!((sent(&mut lab), get(&mut lab, PENDING)), (Vec::new(), 1));
    set(&mut lab, TABLE + 12, 0);
    assert_eq!((sent(&mut lab), get(&mut lab, PENDING)), (Vec::from([0x30]), 0), "once");
}

#[test]
fn all_vectors_wait_while_the_function_is_masked() {
    let mut lab = with_msix();
    lab.set_config(MSIX, ENABLED | FUNCTION_MASKED);
    (0..3).for_each(|vector| set(&mut lab, RAISE, vector));
    assert_eq!((sent(&mut lab), get(&mut lab, PENDING)), (Vec::new(), 0b111));
    lab.set_config(MSIX, ENABLED);
    assert_eq!(sent(&mut lab), [0x30, 0x31, 0x32]);
}

#[test]
fn more_than_leave_at_once_leave_one_after_the_other() {
    let mut lab = with_msix();
    lab.set_config(MSIX, ENABLED | FUNCTION_MASKED);
    (0..40).for_each(|vector| set(&mut lab, RAISE, vector));
    lab.set_config(MSIX, ENABLED);
    let mut all = sent(&mut lab);
    assert!(all.len() < 40 && lab.world.outputs.take_has_more());
    lab.bus.raise_pending(&mut lab.world.outputs);
    all.extend(sent(&mut lab));
    assert!(all.into_iter().eq(0x30..0x30 + 40));
    assert!(!lab.world.outputs.take_has_more());
}

#[test]
fn without_msi_x_or_msi_nothing_is_sent_and_the_device_is_notified() {
    let mut lab = with_msix();
    lab.set_config(MSIX, 0);
    set(&mut lab, RAISE, 0);
    assert_eq!((sent(&mut lab), get(&mut lab, RAISE)), (Vec::new(), 1));
}

#[test]
fn a_vector_that_the_function_does_not_have_is_ignored() {
    let mut lab = with_msix();
    [40, 64, 0xffff].into_iter().for_each(|vector| set(&mut lab, RAISE, vector));
    assert!(lab.world.outputs.is_empty());
}

#[test]
fn the_table_takes_aligned_accesses_of_four_and_eight_bytes_only() {
    let mut lab = lab();
    assert!(lab.write(Space::Memory, TABLE, AccessSize::Qword, u64::MAX));
    assert_eq!(lab.read(Space::Memory, TABLE, AccessSize::Qword), Some(!0b11));
    assert_eq!(get(&mut lab, TABLE + 12), 1, "masked after a reset");
    assert!(lab.write(Space::Memory, TABLE + 8, AccessSize::Byte, 5));
    assert!(lab.write(Space::Memory, TABLE + 6, DWORD, 5));
    assert_eq!(get(&mut lab, TABLE + 8), 0);
    assert_eq!(lab.read(Space::Memory, TABLE + 8, AccessSize::Byte), Some(0xff));
    set(&mut lab, PENDING, 1);
    assert_eq!(get(&mut lab, PENDING), 0, "read only");
    let behind = TABLE + 16 * u64::from(Probe::VECTORS);
    assert_eq!(lab.read(Space::Memory, behind, DWORD), Some(0xffff_ffff), "the device's");
}

#[test]
fn a_message_to_anything_but_a_local_apic_is_none() {
    let mut lab = with_msix();
    set(&mut lab, TABLE, 0x1000);
    set(&mut lab, RAISE, 0);
    set(&mut lab, TABLE + 16, 0xfee0_0000);
    set(&mut lab, TABLE + 16 + 4, 1);
    set(&mut lab, RAISE, 1);
    assert!(lab.world.outputs.is_empty());
    assert_eq!(get(&mut lab, PENDING), 0, "it is not sent again and again");
}

#[test]
fn msi_has_as_many_vectors_as_the_guest_allows() {
    let mut lab = lab();
    lab.set_config(MSI + 4, 0xfee0_1004);
    lab.set_config(MSI + 12, 0x40);
    for (allowed, vectors) in [(0u32, [0x40, 0x40]), (1, [0x41, 0x41]), (2, [0x43, 0x41]), (7, [0x43, 0x41])] {
        lab.set_config(MSI, 1 << 16 | allowed << 20);
        set(&mut lab, RAISE, 3);
        set(&mut lab, RAISE, 1);
        assert_eq!(sent(&mut lab), vectors, "{allowed}");
    }
    set(&mut lab, RAISE, 0);
    let message = lab.world.outputs.take_messages().next().unwrap();
    assert_eq!(message.destination, Destination::Logical(1));
}

#[test]
fn a_masked_message_waits_until_it_is_unmasked() {
    let mut lab = lab();
    lab.set_config(MSI + 4, 0xfee0_0000);
    lab.set_config(MSI + 12, 0x50);
    lab.set_config(MSI + 16, 0xffff_ffff);
    assert_eq!(lab.config(MSI + 16), 0xf, "four vectors");
    lab.set_config(MSI, 1 << 16 | 2 << 20);
    set(&mut lab, RAISE, 2);
    lab.set_config(MSI + 20, 0);
    assert_eq!((sent(&mut lab), lab.config(MSI + 20)), (Vec::new(), 1 << 2));
    lab.set_config(MSI + 16, 0b1011);
    assert_eq!((sent(&mut lab), lab.config(MSI + 20)), (Vec::from([0x52]), 0));
}

#[test]
fn msi_x_goes_before_msi() {
    let mut lab = with_msix();
    lab.set_config(MSI + 4, 0xfee0_0000);
    lab.set_config(MSI, 1 << 16);
    set(&mut lab, RAISE, 1);
    assert_eq!(sent(&mut lab), [0x31]);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The transport's rules, named after the sections that have them.

use std::vec;

use super::*;
use AccessSize::{Byte, Dword, Qword, Word};

/// The capabilities of a function: register, identifier, length and type of each.
fn capabilities(lab: &mut Lab) -> Vec<(u8, u8, u8, u8)> {
    let mut all = Vec::new();
    let mut at = lab.config(0x34, Byte) as u8;
    while at != 0 {
        let [id, next, bytes, kind] = (lab.config(at, Dword) as u32).to_le_bytes();
        all.push((at, id, bytes, kind));
        at = next;
    }
    all
}

fn window(lab: &mut Lab) -> u8 {
    capabilities(lab).into_iter().find(|found| found.3 == 5).expect("there is one").0
}

#[test]
fn s4_1_2_the_identifiers_are_those_of_a_device_without_the_legacy_interface() {
    let mut lab = lab();
    assert_eq!(lab.config(0, Dword), 0x106a_1af4, "0x1040 and the type");
    assert_eq!(lab.config(8, Byte), 1, "revision");
    assert!(lab.config(0x2e, Word) >= 0x40);
}

#[test]
fn s4_1_4_each_structure_has_a_capability() {
    let mut lab = lab();
    let found: Vec<_> = capabilities(&mut lab).into_iter().map(|(_, id, bytes, kind)| (id, bytes, kind)).collect();
    let vendors = [(9, 16, 1), (9, 20, 2), (9, 16, 3), (9, 16, 4), (9, 20, 5)];
    assert_eq!(found[..5], vendors);
    assert_eq!(found[5].0, 0x11, "MSI-X");
    for (at, _, _, kind) in capabilities(&mut lab).into_iter().take(4) {
        let (bar, first, bytes) = (lab.config(at + 4, Byte), lab.config(at + 8, Dword), lab.config(at + 12, Dword));
        let expected = [(0, 64), (0x2000, 0x1000), (0x800, 1), (0x1000, 8)][usize::from(kind) - 1];
        assert_eq!((bar, (first, bytes)), (0, expected), "type {kind}");
    }
    let notify = capabilities(&mut lab)[1].0;
    assert_eq!(lab.config(notify + 16, Dword), 4, "the multiplier");
}

#[test]
fn s2_1_the_status_goes_up_by_bits_and_down_by_a_reset() {
    let mut lab = lab();
    lab.write(20, Byte, 4);
    assert_eq!(lab.status(), 0, "not without features");
    lab.write(20, Byte, 1);
    lab.write(20, Byte, 2);
    assert_eq!(lab.status(), 3, "bits stay");
    lab.write(20, Byte, 64);
    assert_eq!(lab.status(), 3, "no driver sets DEVICE_NEEDS_RESET");
    assert!(lab.negotiate(VERSION_1));
    lab.write(20, Byte, 4);
    assert_eq!(lab.status(), 15);
    lab.write(20, Byte, 0);
    assert_eq!(lab.status(), 0);
}

#[test]
fn s2_2_features_are_accepted_once_and_only_offered_ones() {
    let mut lab = lab();
    assert_eq!(lab.offered(), VERSION_1 | RING_RESET | EVENT_IDX | 1 << 28 | 1 << 5);
    for (features, is_good) in [(VERSION_1, true), (0, false), (VERSION_1 | 1 << 33, false), (VERSION_1 | 1, false)] {
        assert_eq!(lab.negotiate(features), is_good, "{features:#x}");
    }
    assert!(lab.negotiate(VERSION_1 | 1 << 5));
    lab.write(8, Dword, 0);
    lab.write(12, Dword, 0);
    assert_eq!(lab.read(12, Dword), 1 << 5, "they stay");
    lab.write(0, Dword, 2);
    assert_eq!(lab.read(4, Dword), 0, "there are no others");
}

#[test]
fn s4_1_4_3_queues_are_selected_and_set_up() {
    let mut lab = lab();
    assert_eq!(lab.read(18, Word), 2);
    assert!(lab.negotiate(VERSION_1));
    lab.write(22, Word, 1);
    assert_eq!((lab.read(24, Word), lab.read(30, Word)), (64, 1), "size and place of its notification");
    lab.write(32, Qword, 0x1234_5678_9abc_0000);
    assert_eq!(lab.read(32, Qword), 0x1234_5678_9abc_0000);
    assert_eq!(lab.read(36, Dword), 0x1234_5678);
    lab.write(36, Dword, 0);
    lab.set_up(1);
    assert_eq!(lab.read(28, Word), 1);
    lab.write(24, Word, 4);
    lab.write(32, Dword, 0x5000);
    lab.write(28, Word, 0);
    assert_eq!((lab.read(24, Word), lab.read(32, Dword), lab.read(28, Word)), (8, 0x1_0000, 1), "nothing changes");
    lab.write(22, Word, 2);
    assert_eq!((lab.read(24, Word), lab.read(28, Word)), (0, 0), "there is no such queue");
}

#[test]
fn s4_1_5_1_a_vector_that_is_not_there_reads_back_as_none() {
    let mut lab = lab();
    for (vector, back) in [(0, 0), (2, 2), (3, 0xffff), (0xffff, 0xffff)] {
        lab.write(16, Word, vector);
        lab.write(26, Word, vector);
        assert_eq!((lab.read(16, Word), lab.read(26, Word)), (back, back), "{vector}");
    }
}

#[test]
fn s4_1_5_2_a_notification_is_answered_and_interrupts_by_the_queues_vector() {
    let mut lab = started();
    let head = lab.add(0, b"hello", 16).expect("there is room");
    lab.notify(0);
    assert_eq!(lab.collect(0), Some((head, b"hello".to_vec())));
    assert_eq!(lab.interrupts(), [0]);
    lab.notify(1);
    lab.notify(5);
    assert_eq!(lab.interrupts(), []);
}

#[test]
fn s2_7_7_with_event_indices_a_driver_is_interrupted_when_it_wants_to_be() {
    let mut lab = lab();
    lab.start(VERSION_1 | EVENT_IDX);
    // The used event behind the available ring: the third chain from now.
    lab.set_memory(0x1000 + 4 + 16, &2_u16.to_le_bytes());
    for expected in [vec![], vec![], vec![0], vec![]] {
        lab.add(0, b"a", 1).expect("there is room");
        lab.notify(0);
        lab.collect(0).expect("it is answered");
        assert_eq!(lab.interrupts(), expected);
    }
}

#[test]
fn s4_1_4_5_without_msix_the_interrupt_status_is_read_and_cleared() {
    let mut lab = started();
    let msix = capabilities(&mut lab)[5].0;
    lab.set_config(msix + 2, Word, 0);
    lab.add(0, b"a", 1).expect("there is room");
    lab.notify(0);
    lab.write(Lab::DEVICE, Byte, 7);
    assert_eq!(lab.interrupts(), []);
    assert_eq!((lab.read(Lab::ISR, Byte), lab.read(Lab::ISR, Byte)), (3, 0));
}

#[test]
fn s2_5_configuration_is_read_and_written_and_its_changes_are_counted() {
    let mut lab = started();
    let before = lab.read(21, Byte);
    lab.write(Lab::DEVICE + 2, Word, 0x1234);
    assert_eq!((lab.read(Lab::DEVICE, Dword), lab.read(Lab::DEVICE + 4, Qword)), (0x1234_0000, 0));
    assert_eq!(lab.interrupts(), [2]);
    assert_eq!(lab.read(21, Byte), before + 1);
}

#[test]
fn s4_1_4_9_registers_are_reached_through_configuration_space() {
    let mut lab = lab();
    let window = window(&mut lab);
    let mut access = |offset: u64, bytes: u64| {
        lab.set_config(window + 8, Dword, offset);
        lab.set_config(window + 12, Dword, bytes);
    };
    access(20, 1);
    lab.set_config(window + 16, Dword, 0xffff_ff03);
    assert_eq!((lab.status(), lab.config(window + 16, Dword)), (3, 3));
    lab.set_config(window + 8, Dword, 18);
    lab.set_config(window + 12, Dword, 2);
    assert_eq!(lab.config(window + 16, Dword), 2, "queues");
    // Table entries, odd lengths, misaligned offsets, other ranges.
    lab.set_config(window + 8, Dword, 0x3000);
    lab.set_config(window + 12, Dword, 4);
    lab.set_config(window + 16, Dword, 0xfee0_1000);
    assert_eq!(lab.read(0x3000, Dword), 0xfee0_1000);
    for (offset, bytes, range) in [(20, 3, 0), (0x3002, 4, 0), (0x3000, 4, 1), (0xffff_fffc, 4, 0)] {
        lab.set_config(window + 8, Dword, offset);
        lab.set_config(window + 12, Dword, bytes);
        lab.set_config(window + 4, Byte, range);
        lab.set_config(window + 16, Dword, 1);
        lab.config(window + 16, Dword);
    }
    assert_eq!((lab.status(), lab.read(0x3000, Dword)), (3, 0xfee0_1000));
}

#[test]
fn s2_6_1_a_queue_is_reset_alone_and_set_up_again() {
    let mut lab = lab();
    lab.start(VERSION_1 | RING_RESET);
    lab.add(0, b"lost", 8).expect("there is room");
    lab.write(22, Word, 0);
    lab.write(58, Word, 1);
    assert_eq!((lab.read(58, Word), lab.read(28, Word), lab.read(24, Word)), (0, 0, 16));
    lab.notify(0);
    assert_eq!(lab.endpoint.virtio_device().queue_resets, [0]);
    lab.set_up(0);
    let head = lab.add(0, b"new", 8).expect("there is room");
    lab.notify(0);
    assert_eq!(lab.collect(0), Some((head, b"new".to_vec())));
    lab.start(VERSION_1);
    lab.write(22, Word, 0);
    lab.write(58, Word, 1);
    assert_eq!(lab.read(28, Word), 1, "not without the feature");
}

#[test]
fn a_device_that_has_more_to_do_is_polled() {
    let mut lab = started();
    lab.endpoint.virtio_device().at_once = 2;
    (0..3).for_each(|_| assert!(lab.add(0, b"a", 1).is_some()));
    lab.notify(0);
    assert_eq!(lab.world.outputs.take_request(), Some(crate::devices::outputs::Request::Poll));
    assert!(lab.collect(0).is_some() && lab.collect(0).is_some() && lab.collect(0).is_none());
    lab.poll();
    assert!(lab.collect(0).is_some());
    lab.endpoint.virtio_device().has = b"typed".to_vec();
    lab.poll();
    assert_eq!(lab.endpoint.virtio_device().has, b"typed", "there is no buffer");
    let head = lab.add(1, b"", 3).expect("there is room");
    lab.poll();
    assert_eq!(lab.collect(1), Some((head, b"typ".to_vec())));
}

#[test]
fn a_reset_of_the_machine_is_as_power_on() {
    let mut lab = started();
    lab.write(Lab::DEVICE, Byte, 1);
    let mut fresh = self::lab();
    fresh.write(Lab::DEVICE, Byte, 1);
    crate::devices::device::Device::reset(&mut lab.endpoint);
    crate::devices::device::Device::reset(&mut fresh.endpoint);
    assert_eq!(lab.saved(), fresh.saved());
}

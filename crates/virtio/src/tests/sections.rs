// SPDX-License-Identifier: MIT OR Apache-2.0
//! One test for each rule, named after the section that has it.

use super::*;
use crate::model::{AVAILABLE, DESCRIPTORS, USED, put};
use crate::queue::notifications::{NO_INTERRUPT, NO_NOTIFY, is_passed};
use crate::rings::Addresses;
use crate::{Chain, Fault, Progress, chain, feature, status};

/// The numbers are those of an independent transcription of the specification.
#[test]
fn s2_1_s2_7_s6_numbers_are_those_of_the_specification() {
    use virtio_spec::{DeviceStatus, F, virtq::DescF};
    let feature = |feature: F| feature.bits().to_ne();
    assert_eq!(u128::from(feature::INDIRECT_DESC), feature(F::INDIRECT_DESC));
    assert_eq!(u128::from(feature::EVENT_IDX), feature(F::EVENT_IDX));
    assert_eq!(u128::from(feature::VERSION_1), feature(F::VERSION_1));
    assert_eq!(u128::from(feature::RING_RESET), feature(F::RING_RESET));
    let of_status = [
        (status::ACKNOWLEDGE, DeviceStatus::ACKNOWLEDGE),
        (status::DRIVER, DeviceStatus::DRIVER),
        (status::DRIVER_OK, DeviceStatus::DRIVER_OK),
        (status::FEATURES_OK, DeviceStatus::FEATURES_OK),
        (status::DEVICE_NEEDS_RESET, DeviceStatus::DEVICE_NEEDS_RESET),
        (status::FAILED, DeviceStatus::FAILED),
    ];
    of_status.into_iter().for_each(|(own, other)| assert_eq!(own, other.bits()));
    let of_descriptor = [
        (chain::walk::NEXT, DescF::NEXT),
        (chain::walk::WRITE, DescF::WRITE),
        (chain::walk::INDIRECT, DescF::INDIRECT),
    ];
    of_descriptor.into_iter().for_each(|(own, other)| assert_eq!(own, other.bits().to_ne()));
}

#[test]
fn s2_7_a_queue_has_a_power_of_two_of_descriptors_and_aligned_parts() {
    let new = |addresses, size| Queue::new(addresses, size, PLAIN);
    for size in [0, 3, 255, 257, 512, u16::MAX] {
        assert_eq!(new(Driver::addresses(), size), Err(Fault::QueueSize { size }));
    }
    for size in [1, 2, 256] {
        assert!(new(Driver::addresses(), size).is_ok());
    }
    let misaligned = [
        Addresses { descriptors: 0x1008, ..Driver::addresses() },
        Addresses { driver: 0x3001, ..Driver::addresses() },
        Addresses { device: 0x4002, ..Driver::addresses() },
    ];
    for (addresses, address) in misaligned.into_iter().zip([0x1008, 0x3001, 0x4002]) {
        assert_eq!(new(addresses, 8), Err(Fault::Misaligned { address }));
    }
}

#[test]
fn s2_7_5_a_chain_has_what_is_read_and_then_what_is_written() {
    let (ram, mut driver, mut queue) = lab(8, PLAIN);
    let (readable, writable) = ([segment(0x8000, 3), segment(0x9000, 5)], [segment(0xa000, 7), segment(0xb000, 2)]);
    let head = driver.add(&ram, &readable, &writable, false).expect("there is room");
    let mut chain = Chain::new();
    assert_eq!(queue.take(&ram, &mut chain), Ok(true));
    assert_eq!((chain.head(), chain.readable(), chain.writable()), (head, &readable[..], &writable[..]));
    assert_eq!((chain.readable_bytes(), chain.writable_bytes()), (8, 9));
    assert_eq!(queue.take(&ram, &mut chain), Ok(false));
}

#[test]
fn s2_7_4_bytes_are_copied_across_the_segments_whatever_their_bounds_are() {
    let (ram, mut driver, mut queue) = lab(8, PLAIN);
    ram.set(0x8000, b"abc");
    ram.set(0x9000, b"defgh");
    let (readable, writable) = ([segment(0x8000, 3), segment(0x9000, 5)], [segment(0xa000, 2), segment(0xb000, 2)]);
    driver.add(&ram, &readable, &writable, false).expect("there is room");
    let mut chain = Chain::new();
    assert_eq!(queue.take(&ram, &mut chain), Ok(true));
    let mut into = [0; 16];
    assert_eq!(chain.read(&ram, 0, &mut into), Ok(8));
    assert_eq!(&into[..8], b"abcdefgh");
    assert_eq!(chain.read(&ram, 2, &mut into[..3]), Ok(3));
    assert_eq!(&into[..3], b"cde");
    assert_eq!(chain.read(&ram, 8, &mut into), Ok(0));
    assert_eq!(chain.write(&ram, 1, b"xyzw"), Ok(3), "there is room for three");
    assert_eq!((ram.get(0xa000, 2), ram.get(0xb000, 2)), (b"\0x".to_vec(), b"yz".to_vec()));
}

#[test]
fn s2_7_5_3_direct_descriptors_may_come_before_an_indirect_table() {
    let (ram, mut driver, mut queue) = lab(4, ALL);
    put(&ram, DESCRIPTORS, 0, &segment(0x8000, 1), 1, 1);
    // Whether it is writable means nothing.
    put(&ram, DESCRIPTORS, 1, &segment(0x6000, 32), 4 | 2, 0);
    put(&ram, 0x6000, 0, &segment(0x9000, 2), 1, 1);
    put(&ram, 0x6000, 1, &segment(0xa000, 3), 2, 0);
    driver.offer(&ram, 0);
    let mut chain = Chain::new();
    assert_eq!(queue.take(&ram, &mut chain), Ok(true));
    assert_eq!(chain.readable(), [segment(0x8000, 1), segment(0x9000, 2)]);
    assert_eq!(chain.writable(), [segment(0xa000, 3)]);
}

#[test]
fn s2_7_8_the_used_ring_has_head_and_bytes_and_the_index_comes_last() {
    let (ram, mut driver, mut queue) = lab(2, PLAIN);
    let mut chain = Chain::new();
    // Around the ring, and around the indices.
    for round in 0..70_000_u32 {
        let head = driver.add(&ram, &[], &[segment(0x8000, 4)], false).expect("there is room");
        assert_eq!(queue.take(&ram, &mut chain), Ok(true));
        queue.complete(&ram, chain.head(), round).expect("the ring is memory");
        assert_eq!(driver.collect(&ram), None, "it is not published");
        assert_eq!(queue.publish(&ram), Ok(true));
        assert_eq!(driver.collect(&ram), Some((head, round)));
    }
    assert_eq!(queue.publish(&ram), Ok(false), "there is no news");
}

#[test]
fn s2_7_7_without_event_indices_flags_decide() {
    let (ram, mut driver, mut queue) = lab(4, PLAIN);
    let mut chain = Chain::new();
    for (flags, wanted) in [(0, true), (NO_INTERRUPT, false), (0, true)] {
        ram.set(AVAILABLE, &flags.to_le_bytes());
        driver.add(&ram, &[segment(0x8000, 1)], &[], false).expect("there is room");
        assert_eq!(queue.take(&ram, &mut chain), Ok(true));
        queue.complete(&ram, chain.head(), 0).expect("the ring is memory");
        assert_eq!(queue.publish(&ram), Ok(wanted));
        driver.collect(&ram);
    }
    queue.disable_notifications(&ram).expect("the ring is memory");
    assert_eq!(ram.u16(USED), NO_NOTIFY);
    assert_eq!(queue.enable_notifications(&ram), Ok(false));
    assert_eq!(ram.u16(USED), 0);
}

#[test]
fn s2_7_10_an_event_index_is_passed_once_and_around_the_end() {
    assert!(is_passed(0, 0, 1));
    assert!(!is_passed(1, 0, 1));
    assert!(is_passed(1, 0, 2));
    assert!(!is_passed(0, 1, 2), "it was passed before");
    assert!(is_passed(u16::MAX, u16::MAX, 0));
    assert!(is_passed(u16::MAX, 0xfff0, 4));
    assert!(!is_passed(4, 0xfff0, 4));
}

#[test]
fn s2_7_13_4_a_chain_that_came_while_notifications_were_off_is_reported_when_they_are_enabled() {
    for options in [PLAIN, ALL] {
        let (ram, mut driver, mut queue) = lab(4, options);
        queue.disable_notifications(&ram).expect("the ring is memory");
        driver.add(&ram, &[segment(0x8000, 1)], &[], false).expect("there is room");
        assert!(!driver.notifies(&ram));
        assert_eq!(queue.enable_notifications(&ram), Ok(true));
        assert_eq!(queue.take(&ram, &mut Chain::new()), Ok(true));
        assert_eq!(queue.enable_notifications(&ram), Ok(false));
        driver.add(&ram, &[segment(0x8000, 1)], &[], false).expect("there is room");
        assert!(driver.notifies(&ram));
    }
}

#[test]
fn a_chain_that_is_put_back_is_taken_again() {
    let (ram, mut driver, mut queue) = lab(4, PLAIN);
    driver.add(&ram, &[segment(0x8000, 1)], &[], false).expect("there is room");
    let (mut chain, before) = (Chain::new(), queue);
    queue.put_back();
    assert_eq!(queue, before, "nothing was taken");
    assert_eq!(queue.take(&ram, &mut chain), Ok(true));
    queue.put_back();
    assert_eq!(queue, before);
}

#[test]
fn a_saved_queue_goes_on_where_it_was_and_a_wrong_one_is_refused() {
    let (ram, mut driver, mut queue) = lab(4, ALL);
    (0..3).for_each(|_| assert!(driver.add(&ram, &[segment(0x8000, 1)], &[], true).is_some()));
    assert_eq!(queue.take(&ram, &mut Chain::new()), Ok(true));
    let resume = |progress| Queue::resume(queue.addresses(), queue.size(), ALL, progress);
    assert_eq!(resume(queue.progress()), Ok(queue));
    assert_eq!(resume(Progress { taken: 5, used: 0 }), Err(Fault::IndexJumped { index: 5 }));
    assert_eq!(resume(Progress { taken: 0, used: 1 }), Err(Fault::IndexJumped { index: 0 }));
    assert!(resume(Progress { taken: 2, used: 0xfffe }).is_ok());
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames from one driver to another, by sections of the specification (1.3).

use std::vec::Vec;

use ::virtio::feature as queue_feature;
use proptest::prelude::*;
use switch::{HEADER_BYTES, MAX_PAYLOAD_BYTES, Mac, Reason, Tag};

use super::*;
use crate::addr::AccessSize;
use crate::devices::virtio::Io;
use crate::memory::GuestMemory as _;
use crate::testing::{Between, VirtioDriver};

mod pairs;

const RECEIVE: u16 = 0;
const TRANSMIT: u16 = 1;
const BASE: u64 = queue_feature::VERSION_1 | feature::MAC;
const ALL: u64 = queue_feature::VERSION_1 | feature::OFFERED;
const HEADER: usize = 12;
const PLAIN: [u8; HEADER] = [0; HEADER];

type Driver = VirtioDriver<Net>;

fn driver(features: u64) -> Driver {
    let mut driver = Driver::new(Net::new(Mac([0x52, 0x54, 0, 0, 0, 1]), 1500, 1));
    driver.start(features);
    driver
}

fn with<R>(driver: &mut Driver, act: impl FnOnce(&mut Net, &mut Io<'_>) -> Result<R, Fault>) -> Option<R> {
    let mut found = None;
    let world = &mut driver.world;
    driver.endpoint.work(&world.memory, &mut world.outputs, |net, io| {
        found = Some(act(net, io)?);
        Ok(())
    });
    found
}

fn take(from: &mut Driver) -> (Chain, Option<Taken>) {
    let mut chain = Chain::new();
    let taken = with(from, |net, io| net.take(0, &mut chain, io));
    (chain, taken)
}

/// Takes a frame of one driver to another.
fn pass(from: &mut Driver, to: &mut Driver, tag: Option<Tag>) -> Option<Result<usize, Undelivered>> {
    let (chain, taken) = take(from);
    let Some(Taken::Frame(frame)) = taken else { panic!("{taken:?}") };
    let world = &mut to.world;
    let source = Between { from: &from.world.memory, to: &world.memory };
    let mut found = None;
    to.endpoint.work(&world.memory, &mut world.outputs, |net, io| {
        found = Some(net.receive(&frame, tag, (&chain, &source), io)?);
        Ok(())
    });
    with(from, |net, io| net.end_sending(0, true, io));
    found.map(|found| found.map(|received| received.bytes))
}

/// A frame of this many bytes behind the addresses, with a tag.
fn frame(bytes: usize, tag: Option<Tag>) -> Vec<u8> {
    let mut frame: Vec<u8> = (1..=12).collect();
    frame.extend(tag.iter().flat_map(|tag| tag.bytes()));
    frame.extend([8, 0]);
    frame.extend((0..bytes).map(|byte| byte as u8));
    frame
}

fn sent(header: &[u8; HEADER], frame: &[u8]) -> Vec<u8> {
    [&header[..], frame].concat()
}

/// Frames that a driver has received.
fn received(driver: &mut Driver) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| driver.collect(RECEIVE)).map(|(_, bytes)| bytes).collect()
}

/// A header with a partial checksum.
fn partial(start: u16, offset: u16) -> [u8; HEADER] {
    let ([a, b], [c, d]) = (start.to_le_bytes(), offset.to_le_bytes());
    [1, 0, 0, 0, 0, 0, a, b, c, d, 0, 0]
}

/// The same of a TCP packet that is to be segmented.
fn segmented(kind: u8, start: u16, offset: u16) -> [u8; HEADER] {
    let mut header = partial(start, offset);
    (header[1], header[2], header[4], header[5]) = (kind, 54, 0xb4, 0x05);
    header
}

#[test]
fn section_5_1_4_the_configuration_has_address_link_and_mtu() {
    let mut driver = driver(ALL);
    let bytes: Vec<u64> = (0..12).map(|at| driver.read(Driver::DEVICE + at, AccessSize::Byte)).collect();
    assert_eq!(bytes, [0x52, 0x54, 0, 0, 0, 1, 1, 0, 1, 0, 0xdc, 5]);
}

#[test]
fn section_5_1_6_a_frame_arrives_as_it_was_sent() {
    let (mut from, mut to) = (driver(BASE), driver(BASE));
    to.add(RECEIVE, &[], 2000);
    from.add(TRANSMIT, &sent(&PLAIN, &frame(100, None)), 0);
    assert_eq!(pass(&mut from, &mut to, None), Some(Ok(114)));
    let mut expected = PLAIN;
    expected[10] = 1;
    assert_eq!(received(&mut to), [sent(&expected, &frame(100, None))]);
    assert_eq!(to.interrupts(), [RECEIVE]);
    assert!(from.collect(TRANSMIT).is_some(), "it is given back");
    assert_eq!(take(&mut from).1, Some(Taken::Nothing));
}

#[test]
fn section_5_1_6_3_1_a_frame_may_fill_several_buffers() {
    let (mut from, mut to) = (driver(ALL), driver(ALL));
    (0..4).for_each(|_| _ = to.add(RECEIVE, &[], 100));
    from.add(TRANSMIT, &sent(&PLAIN, &frame(200, None)), 0);
    assert_eq!(pass(&mut from, &mut to, None), Some(Ok(214)));
    let buffers = received(&mut to);
    assert_eq!(buffers.iter().map(Vec::len).collect::<Vec<_>>(), [100, 100, 26]);
    assert_eq!(buffers[0][10..12], [3, 0]);
    assert_eq!(buffers.concat()[HEADER..], frame(200, None));
    assert_eq!(to.interrupts(), [RECEIVE], "one for all");
}

#[test]
fn a_frame_without_room_is_dropped_and_leaves_the_buffers_to_the_next() {
    for (features, buffers) in [(ALL, 3), (BASE, 1)] {
        let (mut from, mut to) = (driver(ALL), driver(features));
        (0..buffers).for_each(|_| _ = to.add(RECEIVE, &[], 70));
        from.add(TRANSMIT, &sent(&PLAIN, &frame(300, None)), 0);
        from.add(TRANSMIT, &sent(&PLAIN, &frame(20, None)), 0);
        assert_eq!(pass(&mut from, &mut to, None), Some(Err(Undelivered::Dropped(Reason::Full))));
        assert_eq!((received(&mut to).len(), to.interrupts().len()), (0, 0));
        assert_eq!(pass(&mut from, &mut to, None), Some(Ok(34)));
        assert_eq!(received(&mut to)[0][HEADER..], frame(20, None));
    }
}

/// A chain of this many buffers of a byte each, in a table of their own.
fn add_crumbs(driver: &mut Driver, buffers: u16) {
    let (table, data) = (0x2_8000u64, 0x2_c000u64);
    for number in 0..buffers {
        let is_last = number + 1 == buffers;
        let mut descriptor = (data + u64::from(number)).to_le_bytes().to_vec();
        descriptor.extend(1u32.to_le_bytes());
        descriptor.extend([if is_last { 2 } else { 3 }, 0]);
        descriptor.extend((number + 1).to_le_bytes());
        driver.set_memory(table + 16 * u64::from(number), &descriptor);
    }
    let head = driver.add(RECEIVE, &[], 16).expect("there is room");
    let mut indirect = table.to_le_bytes().to_vec();
    indirect.extend((16 * u32::from(buffers)).to_le_bytes());
    indirect.extend([4, 0, 0, 0]);
    driver.set_memory(16 * u64::from(head), &indirect);
}

#[test]
fn a_receiver_with_crumbs_for_buffers_does_not_get_the_sender_s_time() {
    let features = ALL | queue_feature::INDIRECT_DESC;
    let (mut from, mut to) = (driver(ALL), driver(features));
    (0..4).for_each(|_| add_crumbs(&mut to, 250));
    from.add(TRANSMIT, &sent(&PLAIN, &frame(200, None)), 0);
    assert_eq!(pass(&mut from, &mut to, None), Some(Ok(214)), "226 pieces");
    from.add(TRANSMIT, &sent(&PLAIN, &frame(700, None)), 0);
    assert_eq!(pass(&mut from, &mut to, None), Some(Err(Undelivered::Dropped(Reason::Full))), "more than 640 pieces");
}

#[test]
fn a_frame_of_the_host_s_arrives_whole_or_not_at_all() {
    let own = frame(46, None);
    for (features, tag) in [(BASE, None), (ALL, None), (ALL, Some(Tag::of(9)))] {
        let mut to = driver(features);
        let receive = |to: &mut Driver| with(to, |net, io| net.receive_own(&own, tag, io));
        assert_eq!(receive(&mut to), Some(false), "there is no buffer");
        to.add(RECEIVE, &[], 40);
        assert_eq!(receive(&mut to), Some(false), "there is too little room");
        assert!(received(&mut to).is_empty());
        (0..2).for_each(|_| _ = to.add(RECEIVE, &[], 40));
        if features == BASE {
            assert_eq!(receive(&mut to), Some(false), "one buffer has to suffice");
            continue;
        }
        assert_eq!(receive(&mut to), Some(true));
        let mut expected = frame(46, tag);
        expected.splice(0..0, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2 + u8::from(tag.is_some()), 0]);
        let all = received(&mut to).concat();
        assert_eq!(all[..10], expected[..10]);
        assert_eq!(all[HEADER..], expected[HEADER..]);
        assert_eq!(to.interrupts(), [RECEIVE]);
    }
}

#[test]
fn a_device_without_a_driver_receives_nothing() {
    let (mut from, mut to) = (driver(ALL), driver(ALL));
    to.add(RECEIVE, &[], 2000);
    to.write(20, AccessSize::Byte, 0);
    from.add(TRANSMIT, &sent(&PLAIN, &frame(100, None)), 0);
    assert_eq!(pass(&mut from, &mut to, None), Some(Err(Undelivered::Dropped(Reason::Down))));
}

#[test]
fn section_5_1_6_2_offloads_are_handed_on_to_a_driver_that_takes_them() {
    let (mut from, mut to) = (driver(ALL), driver(ALL));
    for header in [partial(34, 16), segmented(1, 34, 16), segmented(4, 34, 16), segmented(0x81, 34, 16)] {
        to.add(RECEIVE, &[], 2000);
        from.add(TRANSMIT, &sent(&header, &frame(100, None)), 0);
        assert_eq!(pass(&mut from, &mut to, None), Some(Ok(114)));
        let mut expected = header;
        expected[10] = 1;
        assert_eq!(received(&mut to)[0][..HEADER], expected);
    }
}

#[test]
fn section_5_1_6_4_a_driver_that_takes_no_partial_checksums_gets_whole_ones() {
    let (mut from, mut to) = (driver(ALL), driver(BASE));
    for bytes in [100, 101, 600] {
        to.add(RECEIVE, &[], 2000);
        from.add(TRANSMIT, &sent(&partial(34, 16), &frame(bytes, None)), 0);
        assert_eq!(pass(&mut from, &mut to, None), Some(Ok(14 + bytes)));
        let found = received(&mut to).concat();
        assert_eq!(found[0], 0, "nothing is left to the driver");
        // With the checksum in its place the words from its start on add up to all ones, if the field was zero before;
        // here it held the sum of a pseudo-header.
        let original = frame(bytes, None);
        let sum = |bytes: &[u8]| {
            let words = bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
            let sum: u32 = words.sum();
            (sum & 0xffff) + (sum >> 16)
        };
        let expected = !(sum(&original[34..]) as u16);
        assert_eq!(found[HEADER + 50..][..2], expected.to_be_bytes());
        let mut rest = found[HEADER..].to_vec();
        rest[50..52].copy_from_slice(&original[50..52]);
        assert_eq!(rest, original);
    }
}

#[test]
fn what_a_driver_does_not_segment_is_dropped() {
    let checksums = BASE | feature::GUEST_CSUM;
    for (features, kind) in [
        (BASE, 1),
        (checksums | feature::GUEST_TSO6, 1),
        (checksums | feature::GUEST_TSO4, 4),
        (ALL & !feature::GUEST_ECN, 0x81),
    ] {
        let (mut from, mut to) = (driver(ALL), driver(features));
        to.add(RECEIVE, &[], 2000);
        from.add(TRANSMIT, &sent(&segmented(kind, 34, 16), &frame(100, None)), 0);
        assert_eq!(pass(&mut from, &mut to, None), Some(Err(Undelivered::Dropped(Reason::Offload))));
    }
}

#[test]
fn a_tag_comes_and_goes_and_moves_the_checksum_with_it() {
    let tag = Tag::of(10);
    for (here, there, moved) in [(None, Some(tag), 38), (Some(tag), None, 30), (Some(tag), Some(Tag::of(20)), 34)] {
        let (mut from, mut to) = (driver(ALL), driver(ALL));
        to.add(RECEIVE, &[], 2000);
        from.add(TRANSMIT, &sent(&partial(34, 16), &frame(100, here)), 0);
        assert!(matches!(pass(&mut from, &mut to, there), Some(Ok(_))));
        let found = received(&mut to).concat();
        assert_eq!(found[HEADER..], frame(100, there));
        assert_eq!(found[6..8], u16::to_le_bytes(moved));
    }
}

#[test]
fn headers_and_frames_that_make_no_sense_are_dropped_and_given_back() {
    let good = frame(100, None);
    let dropped = |features: u64, bytes: &[u8]| {
        let mut from = driver(features);
        from.add(TRANSMIT, bytes, 0);
        let (_, taken) = take(&mut from);
        with(&mut from, |net, io| net.end_sending(0, true, io));
        assert!(from.collect(TRANSMIT).is_some());
        taken
    };
    let malformed = Some(Taken::Dropped(Reason::Malformed));
    assert_eq!(dropped(ALL, &PLAIN[..11]), malformed);
    assert_eq!(dropped(ALL, &PLAIN), Some(Taken::Dropped(Reason::Short)), "0 bytes");
    assert_eq!(dropped(ALL, &sent(&PLAIN, &good[..13])), Some(Taken::Dropped(Reason::Short)));
    for header in [partial(13, 0), partial(34, 79), partial(0xffff, 0xffff), segmented(2, 34, 16), segmented(3, 34, 16)]
    {
        assert_eq!(dropped(ALL, &sent(&header, &good)), malformed, "{header:?}");
    }
    let with_byte = |at: usize, byte: u8| {
        let mut header = segmented(1, 34, 16);
        header[at] = byte;
        header
    };
    for header in [with_byte(0, 0), with_byte(2, 115), with_byte(1, 0x80)] {
        assert_eq!(dropped(ALL, &sent(&header, &good)), malformed, "{header:?}");
    }
    assert_eq!(dropped(BASE, &sent(&partial(34, 16), &good)), malformed, "not negotiated");
    assert_eq!(dropped(BASE | feature::CSUM, &sent(&segmented(1, 34, 16), &good)), malformed, "not negotiated");
}

#[test]
fn a_frame_longer_than_any_is_dropped() {
    let mut from = driver(ALL);
    // The driver's descriptor has more bytes than its buffer: they are memory all the same.
    from.add(TRANSMIT, &sent(&PLAIN, &frame(100, None)), 0);
    let bytes = (HEADER + HEADER_BYTES + MAX_PAYLOAD_BYTES + 1) as u32;
    let table = 0x1_0000;
    from.set_memory(table + 8, &bytes.to_le_bytes());
    assert_eq!(take(&mut from).1, Some(Taken::Dropped(Reason::Long)));
}

#[test]
fn a_frame_is_given_back_with_the_next_one_and_all_are_at_the_end() {
    let mut from = driver(ALL);
    (0..3).for_each(|_| _ = from.add(TRANSMIT, &sent(&PLAIN, &frame(100, None)), 0));
    for _ in 0..3 {
        assert!(matches!(take(&mut from).1, Some(Taken::Frame(_))));
        assert!(from.collect(TRANSMIT).is_none(), "it is not published");
    }
    assert_eq!(with(&mut from, |net, io| net.end_sending(0, true, io)), Some(false));
    (0..3).for_each(|_| assert!(from.collect(TRANSMIT).is_some()));
    assert!(from.collect(TRANSMIT).is_none());
}

#[test]
fn a_receiver_with_less_than_a_quarter_of_its_buffers_left_is_short_of_them() {
    let (mut from, mut to) = (driver(ALL), driver(ALL));
    (0..4).for_each(|_| _ = to.add(RECEIVE, &[], 1536));
    for left in [3, 2, 1] {
        from.add(TRANSMIT, &sent(&PLAIN, &frame(100, None)), 0);
        let (chain, taken) = take(&mut from);
        let Some(Taken::Frame(frame)) = taken else { panic!("{taken:?}") };
        let source = Between { from: &from.world.memory, to: &to.world.memory };
        let mut found = None;
        to.endpoint.work(&to.world.memory, &mut to.world.outputs, |net, io| {
            found = Some(net.receive(&frame, None, (&chain, &source), io)?);
            Ok(())
        });
        assert_eq!(found, Some(Ok(Received { bytes: 114, is_short: left < 2 })), "{left} left");
        with(&mut from, |net, io| net.end_sending(0, true, io));
    }
}

#[test]
fn a_reset_while_a_frame_is_sent_gives_nothing_back() {
    let mut from = driver(ALL);
    from.add(TRANSMIT, &sent(&PLAIN, &frame(100, None)), 0);
    assert!(matches!(take(&mut from).1, Some(Taken::Frame(_))));
    from.start(ALL);
    from.add(TRANSMIT, &sent(&PLAIN, &frame(100, None)), 0);
    with(&mut from, |net, io| net.end_sending(0, true, io)).expect("no fault");
    assert!(from.collect(TRANSMIT).is_none());
    assert!(matches!(take(&mut from).1, Some(Taken::Frame(_))));
}

#[test]
fn a_receiver_at_fault_needs_a_reset_and_its_sender_does_not() {
    let (mut from, mut to) = (driver(ALL), driver(ALL));
    // A buffer that the device cannot write.
    to.add(RECEIVE, &[1; 64], 0);
    from.add(TRANSMIT, &sent(&PLAIN, &frame(100, None)), 0);
    assert_eq!(pass(&mut from, &mut to, None), None);
    assert_eq!((to.status() & 64, from.status() & 64), (64, 0));
}

#[test]
fn a_sender_whose_memory_ends_is_at_fault_and_the_receiver_s_buffers_stay() {
    let (mut from, mut to) = (driver(ALL), driver(ALL));
    to.add(RECEIVE, &[], 4096);
    from.add(TRANSMIT, &sent(&PLAIN, &frame(100, None)), 0);
    // Of the frame only the headers are memory.
    let (address, table) = (from.world.memory.size_bytes() - 30, 0x1_0000);
    from.set_memory(table, &address.to_le_bytes());
    assert!(matches!(pass(&mut from, &mut to, None), Some(Err(Undelivered::Sender(Fault::Outside(_))))));
    assert!(received(&mut to).is_empty());
    from.start(ALL);
    from.add(TRANSMIT, &sent(&PLAIN, &frame(100, None)), 0);
    assert_eq!(pass(&mut from, &mut to, None), Some(Ok(114)));
}

#[test]
fn frames_in_rings_are_sent_by_the_next_image() {
    let (mut from, mut to) = (driver(ALL), driver(ALL));
    to.add(RECEIVE, &[], 2000);
    from.add(TRANSMIT, &sent(&PLAIN, &frame(100, None)), 0);
    let device = || Net::new(Mac([0x52, 0x54, 0, 0, 0, 1]), 1500, 1);
    from.hand_over(device()).expect("the state is good");
    to.hand_over(device()).expect("the state is good");
    assert_eq!(pass(&mut from, &mut to, None), Some(Ok(114)));
    assert_eq!(received(&mut to).len(), 1);
}

proptest! {
    /// Any header and frame, any features on both sides: what arrives is what was sent, or nothing.
    #[test]
    fn what_arrives_is_what_was_sent(
        header: [u8; HEADER],
        is_partial: bool,
        bytes in 0usize..3000,
        (from_features, to_features) in any::<(u64, u64)>(),
        (is_tagged, tag) in (any::<bool>(), prop::option::of(0u16..4095)),
        buffers in prop::collection::vec(1u32..4097, 0..8),
    ) {
        let features = |wanted: u64| BASE | wanted & feature::OFFERED;
        let (mut from, mut to) = (driver(features(from_features)), driver(features(to_features)));
        buffers.iter().for_each(|bytes| _ = to.add(RECEIVE, &[], *bytes));
        let header = if is_partial { partial(34, 16) } else { header };
        let frame = frame(bytes, is_tagged.then(|| Tag::of(7)));
        from.add(TRANSMIT, &sent(&header, &frame), 0);
        let (chain, taken) = take(&mut from);
        let Some(Taken::Frame(found)) = taken else { return Ok(()) };
        let tag = tag.map(Tag::of);
        let world = &mut to.world;
        let source = Between { from: &from.world.memory, to: &world.memory };
        let mut result = None;
        to.endpoint.work(&world.memory, &mut world.outputs, |net, io| {
            result = Some(net.receive(&found, tag, (&chain, &source), io)?);
            Ok(())
        });
        let arrived = received(&mut to);
        match result {
            Some(Ok(Received { bytes, .. })) => {
                let all = arrived.concat();
                prop_assert_eq!(all.len(), HEADER + bytes);
                prop_assert_eq!(usize::from(all[10]), arrived.len());
                let behind = if is_tagged { 16 } else { 12 };
                let mut expected = frame[..12].to_vec();
                expected.extend(tag.iter().flat_map(|tag| tag.bytes()));
                expected.extend(&frame[behind..]);
                prop_assert_eq!(bytes, expected.len());
                let is_filled = all[0] == 0 && header[0] & 1 != 0;
                let wrong = all[HEADER..].iter().zip(&expected).filter(|(found, expected)| found != expected).count();
                let most = if is_filled { 2 } else { 0 };
                prop_assert!(wrong <= most, "{} bytes are wrong", wrong);
            }
            _ => prop_assert!(arrived.is_empty()),
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several pairs of queues, section 5.1.6.5.5.

use std::vec;

use super::super::flows::{self, FLOW_BYTES};
use super::*;

const MQ: u64 = ALL | feature::CTRL_VQ | feature::MQ;
const PAIRS: u16 = 4;
/// The queue for commands of a driver with multiqueue, and of one without.
const CONTROL: u16 = 2 * PAIRS;
const CONTROL_OF_ONE: u16 = 2;

fn device(pairs: u16) -> Net {
    Net::new(Mac([0x52, 0x54, 0, 0, 0, 1]), 1500, pairs)
}

/// A driver of four pairs that uses as many.
fn with_pairs(used: u16) -> Driver {
    let mut driver = Driver::new(device(PAIRS));
    driver.start(MQ);
    assert_eq!(set_pairs(&mut driver, used), Some(vec![0]));
    driver
}

fn set_pairs(driver: &mut Driver, pairs: u16) -> Option<Vec<u8>> {
    let [low, high] = pairs.to_le_bytes();
    command(driver, CONTROL, &[4, 0, low, high])
}

/// The answer to a command.
fn command(driver: &mut Driver, queue: u16, bytes: &[u8]) -> Option<Vec<u8>> {
    driver.add(queue, bytes, 1)?;
    driver.notify(queue);
    driver.collect(queue).map(|(_, answer)| answer)
}

/// A TCP packet from one address and port to another, without options.
fn packet(from: (u8, u16), to: (u8, u16)) -> Vec<u8> {
    let mut frame = frame(100, None);
    let packet = &mut frame[HEADER_BYTES..];
    packet[..12].copy_from_slice(&[0x45, 0, 0, 100, 0, 0, 0, 0, 64, 6, 0, 0]);
    packet[12..20].copy_from_slice(&[10, 0, 0, from.0, 10, 0, 0, to.0]);
    packet[20..22].copy_from_slice(&from.1.to_be_bytes());
    packet[22..24].copy_from_slice(&to.1.to_be_bytes());
    frame
}

/// Sends a frame by a pair of queues; the pair by which the other driver receives it.
fn pass_by(from: &mut Driver, pair: usize, to: &mut Driver, frame: &[u8]) -> Option<u16> {
    let used = (0..PAIRS).map(|pair| to.add(2 * pair, &[], 2000).map(drop)).collect::<Option<Vec<()>>>();
    assert!(used.is_some(), "there is room for a buffer in each queue");
    from.add(2 * pair as u16 + 1, &sent(&PLAIN, frame), 0);
    let mut chain = Chain::new();
    let taken = with(from, |net, io| net.take(pair, &mut chain, io));
    let Some(Taken::Frame(taken)) = taken else { panic!("{taken:?}") };
    let source = Between { from: &from.world.memory, to: &to.world.memory };
    let mut received = None;
    to.endpoint.work(&to.world.memory, &mut to.world.outputs, |net, io| {
        received = Some(net.receive(&taken, None, (&chain, &source), io)?);
        Ok(())
    });
    assert!(matches!(received, Some(Ok(_))), "{received:?}");
    with(from, |net, io| net.end_sending(pair, true, io));
    assert!(from.collect(2 * pair as u16 + 1).is_some());
    let found = (0..PAIRS).find(|pair| to.collect(2 * pair).is_some());
    // The buffers of the other pairs: a driver that has them all back.
    to.start(MQ);
    found
}

#[test]
fn section_5_1_4_the_configuration_has_the_pairs_and_one_offers_no_multiqueue() {
    for (pairs, features) in [(1, 0), (4, feature::CTRL_VQ | feature::MQ), (16, feature::CTRL_VQ | feature::MQ)] {
        let mut driver = Driver::new(device(pairs));
        assert_eq!(driver.offered() & (feature::CTRL_VQ | feature::MQ), features);
        assert_eq!(driver.read(Driver::DEVICE + 8, AccessSize::Word), u64::from(pairs));
        assert_eq!(driver.queues(), if pairs == 1 { 2 } else { 2 * pairs + 1 });
    }
}

#[test]
fn section_5_1_6_5_5_a_driver_uses_one_pair_until_it_asks_for_more() {
    let mut driver = Driver::new(device(PAIRS));
    driver.start(MQ);
    let used = |driver: &mut Driver| with(driver, |net, _| Ok(net.pairs.used()));
    assert_eq!(used(&mut driver), Some(1));
    for (asked, answer, expected) in [(4, 0, 4), (2, 0, 2), (0, 1, 2), (5, 1, 2), (0xffff, 1, 2), (1, 0, 1)] {
        assert_eq!(set_pairs(&mut driver, asked), Some(vec![answer]), "{asked}");
        assert_eq!(used(&mut driver), Some(expected), "{asked}");
    }
    assert_eq!(driver.interrupts(), [CONTROL; 6], "one for each answer");
}

#[test]
fn other_commands_are_answered_with_an_error() {
    let mut driver = with_pairs(3);
    for bytes in [&[4u8, 1, 2, 0][..], &[0, 0, 1, 0], &[4, 0, 2], &[4], &[3, 0, 1, 0, 0, 0]] {
        assert_eq!(command(&mut driver, CONTROL, bytes), Some(vec![1]), "{bytes:?}");
    }
    assert_eq!(with(&mut driver, |net, _| Ok(net.pairs.used())), Some(3));
}

#[test]
fn without_multiqueue_the_third_queue_is_that_for_commands() {
    let mut driver = Driver::new(device(PAIRS));
    driver.start(ALL | feature::CTRL_VQ);
    assert_eq!(command(&mut driver, CONTROL_OF_ONE, &[4, 0, 2, 0]), Some(vec![1]));
    assert_eq!(with(&mut driver, |net, _| Ok(net.pairs.used())), Some(1));
}

#[test]
fn a_command_without_room_for_its_answer_is_a_fault() {
    let mut driver = with_pairs(2);
    driver.add(CONTROL, &[4, 0, 1, 0], 0);
    driver.notify(CONTROL);
    assert_ne!(driver.status() & 64, 0);
}

#[test]
fn a_flow_is_received_by_the_pair_by_which_the_driver_sends_it() {
    for pair in 0..usize::from(PAIRS) {
        let (mut from, mut to) = (with_pairs(PAIRS), with_pairs(PAIRS));
        with(&mut to, |_, _| Ok(()));
        let (client, server) = ((1, 40_000), (2, 80));
        // The receiver has sent by this pair.
        to.add(2 * pair as u16 + 1, &sent(&PLAIN, &packet(server, client)), 0);
        let mut chain = Chain::new();
        assert!(matches!(with(&mut to, |net, io| net.take(pair, &mut chain, io)), Some(Taken::Frame(_))));
        with(&mut to, |net, io| net.end_sending(pair, true, io));
        assert_eq!(pass_by(&mut from, 0, &mut to, &packet(client, server)), Some(pair as u16));
    }
}

#[test]
fn flows_that_the_driver_has_not_sent_go_to_all_pairs_that_it_uses() {
    for used in 1..=PAIRS {
        let mut counts = [0; PAIRS as usize];
        for port in 0..200 {
            let mut to = with_pairs(used);
            let pair = pass_by(&mut with_pairs(1), 0, &mut to, &packet((1, 40_000 + port), (2, 80)));
            counts[usize::from(pair.expect("it is received"))] += 1;
        }
        let (in_use, others) = counts.split_at(used.into());
        assert!(in_use.iter().all(|count| *count > 200 / i32::from(used) / 2), "{counts:?}");
        assert!(others.iter().all(|count| *count == 0), "{counts:?}");
    }
}

#[test]
fn each_pair_waits_from_its_notification_until_its_frames_are_taken() {
    let mut driver = with_pairs(PAIRS);
    let waiting = |driver: &mut Driver| with(driver, |net, _| Ok(net.waiting()));
    assert_eq!(waiting(&mut driver), Some(0));
    driver.notify(3);
    driver.notify(7);
    assert_eq!(waiting(&mut driver), Some(0b1010));
    with(&mut driver, |net, io| net.begin_sending(1, io));
    assert_eq!(waiting(&mut driver), Some(0b1000));
    with(&mut driver, |net, io| net.end_sending(1, false, io));
    assert_eq!(waiting(&mut driver), Some(0b1010), "it is not asked to notify the device again");
    with(&mut driver, |net, io| net.begin_sending(1, io));
    with(&mut driver, |net, io| net.end_sending(1, true, io));
    assert_eq!(waiting(&mut driver), Some(0b1000));
    assert_eq!(Net::new(Mac([2; 6]), 1500, 1).waiting(), 1, "one pair is always asked");
}

#[test]
fn the_pairs_in_use_and_their_frames_are_there_in_the_next_image() {
    let mut driver = with_pairs(3);
    driver.hand_over(device(PAIRS)).expect("the state is good");
    assert_eq!(with(&mut driver, |net, _| Ok((net.pairs.used(), net.waiting()))), Some((3, 0b1111)));
    for pairs in [1, 2, 5] {
        assert!(with_pairs(3).hand_over(device(pairs)).is_err(), "another number of queues");
    }
    let mut reset = with_pairs(3);
    reset.write(20, AccessSize::Byte, 0);
    reset.hand_over(device(PAIRS)).expect("the state is good");
    assert_eq!(with(&mut reset, |net, _| Ok(net.pairs.used())), Some(1));
}

#[test]
fn a_state_with_pairs_that_the_device_does_not_have_is_refused() {
    use crate::devices::virtio::VirtioDevice as _;
    for (pairs, is_good) in [(1u16, true), (4, true), (0, false), (5, false)] {
        let [low, high] = pairs.to_le_bytes();
        let restored = device(PAIRS).restore(1, &[low, high, 0, 0, 0, 0, 0, 0]);
        assert_eq!(restored.is_ok(), is_good, "{pairs}");
    }
    assert!(device(PAIRS).restore(1, &[]).is_err());
    assert!(device(1).restore(1, &[1, 0, 0, 0, 0, 0, 0, 0]).is_err());
}

/// The first bytes of a frame.
fn first(frame: &[u8]) -> [u8; FLOW_BYTES] {
    let mut first = [0; FLOW_BYTES];
    let most = frame.len().min(FLOW_BYTES);
    first[..most].copy_from_slice(&frame[..most]);
    first
}

#[test]
fn later_fragments_of_a_packet_have_no_ports() {
    let fragment = |from| {
        let mut frame = packet(from, (2, 80));
        frame[HEADER_BYTES + 7] = 10;
        flows::number(&first(&frame), 12)
    };
    assert_eq!(fragment((1, 40_000)), fragment((1, 50_000)));
}

proptest! {
    /// Both directions of a flow have one number, also behind a tag and in IPv6.
    #[test]
    fn a_packet_and_its_answer_are_one_flow(
        addresses: [u8; 32], (from, to) in any::<(u16, u16)>(), protocol: u8, is_ipv6: bool, is_tagged: bool,
        options in 5u8..16,
    ) {
        let build = |addresses: [&[u8]; 2], (from, to): (u16, u16)| {
            let mut frame: Vec<u8> = (1..=12).collect();
            frame.extend(if is_tagged { &[0x81, 0, 0, 7][..] } else { &[] });
            if is_ipv6 {
                frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, protocol, 64]);
                addresses.iter().for_each(|address| frame.extend(*address));
            } else {
                frame.extend([8, 0, 0x40 | options, 0, 0, 100, 0, 0, 0, 0, 64, protocol, 0, 0]);
                addresses.iter().for_each(|address| frame.extend(&address[..4]));
                frame.extend(vec![0; 4 * usize::from(options) - 20]);
            }
            frame.extend(from.to_be_bytes());
            frame.extend(to.to_be_bytes());
            first(&frame)
        };
        let type_at = if is_tagged { 16 } else { 12 };
        let (one, other) = addresses.split_at(16);
        let there = flows::number(&build([one, other], (from, to)), type_at);
        let back = flows::number(&build([other, one], (to, from)), type_at);
        prop_assert_eq!(there, back);
    }

    /// Whatever a frame begins with, it has a flow.
    #[test]
    fn any_bytes_have_a_flow(bytes in prop::collection::vec(any::<u8>(), FLOW_BYTES), is_tagged: bool) {
        let mut first = [0; FLOW_BYTES];
        first.copy_from_slice(&bytes);
        flows::number(&first, if is_tagged { 16 } else { 12 });
    }
}

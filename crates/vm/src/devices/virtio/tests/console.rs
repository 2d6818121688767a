// SPDX-License-Identifier: MIT OR Apache-2.0
//! The console device's rules (section 5.3).

use std::collections::VecDeque;

use alloc::sync::Arc;

use super::*;
use crate::devices::outputs::Request;
use crate::devices::virtio::console::{Console, Port};

/// A console's other end.
#[derive(Debug, Default)]
struct End {
    written: Vec<u8>,
    typed: VecDeque<u8>,
    takes_input: bool,
}

#[derive(Clone, Debug, Default)]
struct Shared(Arc<spin::Mutex<End>>);

impl Port for Shared {
    fn write(&mut self, bytes: &[u8]) {
        self.0.lock().written.extend(bytes);
    }
    fn read(&mut self, into: &mut [u8]) -> usize {
        let mut end = self.0.lock();
        let count = into.len().min(end.typed.len());
        into.iter_mut().zip(end.typed.drain(..count)).for_each(|(into, byte)| *into = byte);
        count
    }
    fn set_takes_input(&mut self, takes_input: bool) {
        self.0.lock().takes_input = takes_input;
    }
}

fn started() -> (VirtioDriver<Console<Shared>>, Shared) {
    let end = Shared::default();
    let mut lab = VirtioDriver::new(Console::new(end.clone()));
    lab.start(VERSION_1 | EVENT_IDX);
    (lab, end)
}

fn type_on(end: &Shared, text: &[u8]) {
    end.0.lock().typed.extend(text);
}

#[test]
fn s5_3_6_what_is_transmitted_is_written_with_one_notification() {
    let (mut lab, end) = started();
    let long: Vec<u8> = (0..1000).map(|at| at as u8).collect();
    let heads = [lab.add(1, &long, 0), lab.add(1, b"end", 0)];
    lab.notify(1);
    assert_eq!(end.0.lock().written, [&long[..], b"end"].concat());
    for head in heads {
        assert_eq!(lab.collect(1), head.map(|head| (head, Vec::new())));
    }
    assert_eq!(lab.interrupts(), [1]);
}

#[test]
fn s5_3_6_what_is_typed_arrives_in_order_and_waits_for_room() {
    let (mut lab, end) = started();
    type_on(&end, b"0123456789");
    lab.poll();
    assert_eq!(end.0.lock().typed.len(), 10, "there is no room");
    let head = lab.add(0, b"", 4).expect("there is room");
    lab.notify(0);
    assert_eq!(lab.collect(0), Some((head, b"0123".to_vec())));
    (0..2).for_each(|_| assert!(lab.add(0, b"", 64).is_some()));
    lab.poll();
    assert_eq!(lab.collect(0).map(|(_, bytes)| bytes), Some(b"456789".to_vec()));
    assert_eq!(lab.collect(0), None, "the other buffer waits for what is typed next");
    type_on(&end, b"x");
    lab.poll();
    assert_eq!(lab.collect(0).map(|(_, bytes)| bytes), Some(b"x".to_vec()));
}

#[test]
fn com1_takes_input_until_the_driver_does_and_after_a_reset() {
    let (mut lab, end) = started();
    assert!(!end.0.lock().takes_input);
    lab.add(0, b"", 4).expect("there is room");
    lab.notify(0);
    assert!(end.0.lock().takes_input);
    lab.write(20, AccessSize::Byte, 0);
    assert!(!end.0.lock().takes_input);
}

#[test]
fn one_notification_writes_a_bounded_number_of_bytes_and_the_rest_is_polled() {
    let (mut lab, end) = started();
    let page = [b'a'; 4096];
    (0..6).for_each(|_| assert!(lab.add(1, &page, 0).is_some()));
    lab.notify(1);
    assert_eq!(end.0.lock().written.len(), 4 * page.len());
    assert_eq!(lab.world.outputs.take_request(), Some(Request::Poll));
    lab.poll();
    assert_eq!(end.0.lock().written.len(), 6 * page.len());
}

#[test]
fn an_endless_chain_of_output_is_cut() {
    let (mut lab, end) = started();
    lab.add(1, b"a", 0).expect("there is room");
    // The descriptor's length becomes 4 GiB, all of it the start of memory.
    let descriptor = lab.memory(0x1_0000, 16);
    lab.set_memory(0x1_0000, &0_u64.to_le_bytes());
    lab.set_memory(0x1_0008, &0x2_0000_u32.to_le_bytes());
    lab.notify(1);
    assert_eq!(end.0.lock().written.len(), 16 * 1024, "{descriptor:?}");
}

#[test]
fn output_and_input_go_on_in_another_image() {
    let (mut lab, end) = started();
    lab.add(0, b"", 8).expect("there is room");
    lab.notify(0);
    lab.add(1, b"before", 0).expect("there is room");
    lab.hand_over(Console::new(end.clone())).expect("it is good");
    type_on(&end, b"after");
    lab.poll();
    assert_eq!(lab.collect(0).map(|(_, bytes)| bytes), Some(b"after".to_vec()));
    assert_eq!(end.0.lock().written, b"before");
    assert!(lab.collect(1).is_some());
}

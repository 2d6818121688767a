// SPDX-License-Identifier: MIT OR Apache-2.0
use std::vec::Vec;

use super::*;
use crate::devices::{DeliveryMode, Destination};

fn message(vector: u8) -> InterruptMessage {
    InterruptMessage { destination: Destination::All, mode: DeliveryMode::Fixed, vector, is_level: false }
}

#[test]
fn messages_leave_in_their_order_and_once() {
    let mut outputs = Outputs::new();
    assert!(outputs.is_empty());
    assert!((0x30..0x33).all(|vector| outputs.send(message(vector))));
    let vectors: Vec<u8> = outputs.take_messages().map(|message| message.vector).collect();
    assert_eq!(vectors, [0x30, 0x31, 0x32]);
    assert!(outputs.is_empty() && !outputs.take_has_more());
}

#[test]
fn a_message_without_room_stays_with_the_device_which_is_asked_again() {
    let mut outputs = Outputs::new();
    assert!((0..IOAPIC_PINS).all(|_| outputs.send(message(0x30))));
    assert!(!outputs.send(message(0x31)));
    assert_eq!(outputs.take_messages().count(), IOAPIC_PINS);
    assert!(outputs.take_has_more());
    assert!(!outputs.take_has_more(), "once");
}

#[test]
fn the_last_level_of_a_line_counts_however_often_it_changes() {
    let mut outputs = Outputs::new();
    (0..9).for_each(|change| outputs.set_line(4, change % 2 == 0));
    assert_eq!(outputs.take_lines().last(), Some(&Line { pin: 4, level: true }));
}

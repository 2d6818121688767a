// SPDX-License-Identifier: MIT OR Apache-2.0

use std::vec;
use std::vec::Vec;

use super::fake::Fake;
use crate::{Interrupts, Patience, Peer, Policy, Rate, Register, Uart};

fn started(fake: Fake, policy: Policy) -> Uart<Fake> {
    let mut uart = Uart::new(fake);
    uart.start(Rate::FASTEST, policy, Peer::Reads).expect("it is there");
    (uart.hardware().lost, uart.hardware().bursts) = (0, Vec::new());
    uart
}

fn text(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| index as u8).collect()
}

/// Accesses that sending so many bytes took, in pieces of so many.
fn accesses(fake: Fake, policy: Policy, bytes: usize, piece: usize) -> u64 {
    let mut uart = started(fake, policy);
    let before = uart.hardware().accesses();
    for piece in text(bytes).chunks(piece) {
        assert_eq!(uart.send(piece, Patience::USUAL), piece.len());
    }
    uart.hardware().accesses() - before
}

#[test]
fn byte_policy_reads_the_status_for_each_byte() {
    assert_eq!(accesses(Fake { byte_ns: 0, ..Fake::new() }, Policy::Byte, 1600, 80), 3200);
}

#[test]
fn fifo_policy_reads_the_status_once_per_sixteen_bytes() {
    for piece in [1, 7, 16, 70, 1600] {
        assert_eq!(accesses(Fake { byte_ns: 0, ..Fake::new() }, Policy::Fifo, 1600, piece), 1700, "{piece}");
    }
}

#[test]
fn with_a_clock_a_paced_uart_is_not_checked_before_it_can_be_empty() {
    let mut uart = started(Fake::new(), Policy::Fifo);
    let before = uart.hardware().status_reads;
    uart.send(&text(160), Patience::USUAL);
    // The wire takes 1.4 ms for a fill, a read 1 µs: a few dozen come after the earliest moment, none before.
    let reads = uart.hardware().status_reads - before;
    assert!(reads < 10 * 60, "{reads}");
}

#[test]
fn an_offer_writes_one_burst_after_one_status_read() {
    let mut uart = started(Fake { byte_ns: 0, ..Fake::new() }, Policy::Fifo);
    assert_eq!(uart.offer(&text(100)), 16);
    assert_eq!(uart.hardware().bursts, vec![16]);
    assert_eq!(uart.counters().status_reads, 1);
}

#[test]
fn no_byte_is_lost_in_a_fifo() {
    for depth in [2, 16, 64] {
        let mut uart = started(Fake { depth, ..Fake::new() }, Policy::Fifo);
        assert_eq!(uart.send(&text(500), Patience::USUAL), 500);
        uart.hardware().now_ns += 10_000_000;
        crate::Hardware::pause(uart.hardware());
        assert_eq!((uart.hardware().lost, uart.hardware().received.clone()), (0, text(500)));
    }
}

#[test]
fn a_uart_that_stands_still_is_dropped_and_counted() {
    let mut uart = started(Fake::new(), Policy::Fifo);
    uart.hardware().is_stuck = true;
    let sent = uart.send(&text(100), Patience::USUAL);
    // As many as the FIFO holds, and no more.
    assert_eq!((sent, uart.is_alive()), (16, false));
    assert_eq!((uart.counters().drops, uart.counters().refused_bytes), (1, 84));
    assert!(uart.hardware().now_ns < 100_000_000, "bounded by the wire's time");
}

#[test]
fn a_dropped_uart_is_checked_rarely_and_used_again() {
    let mut uart = started(Fake::new(), Policy::Fifo);
    uart.hardware().is_stuck = true;
    uart.send(&text(100), Patience::USUAL);
    let before = uart.hardware().accesses();
    assert!((0..1000).all(|_| uart.offer(b"x") == 0));
    assert_eq!(uart.hardware().accesses(), before, "not before a second has passed");
    uart.hardware().is_stuck = false;
    uart.hardware().now_ns += 1_100_000_000;
    assert_eq!(uart.send(b"back", Patience::USUAL), 4);
    assert!(uart.is_alive());
}

#[test]
fn an_interrupt_puts_a_dropped_uart_into_use_again_at_once() {
    let mut uart = started(Fake::new(), Policy::Fifo);
    uart.hardware().is_stuck = true;
    uart.send(&text(100), Patience::USUAL);
    uart.hardware().is_stuck = false;
    uart.hardware().now_ns += 2_000_000;
    crate::Hardware::pause(uart.hardware());
    uart.interrupted();
    assert_eq!(uart.offer(b"back"), 4);
}

#[test]
fn last_words_leave_a_uart_that_was_dropped_a_moment_ago() {
    let mut uart = started(Fake::new(), Policy::Fifo);
    uart.hardware().is_stuck = true;
    let sent = uart.send(&text(100), Patience::USUAL);
    uart.hardware().is_stuck = false;
    assert_eq!(uart.send(&text(100)[sent..], Patience::LAST_WORDS), 0, "it is left alone for a second");
    uart.retry();
    assert_eq!(uart.send(&text(100)[sent..], Patience::LAST_WORDS), 100 - sent);
    uart.drain(Patience::LAST_WORDS);
    assert_eq!(uart.hardware().received, text(100), "nothing is left in its FIFO");
}

#[test]
fn last_words_on_a_uart_that_still_stands_still_take_a_bounded_time() {
    let mut uart = started(Fake::new(), Policy::Fifo);
    uart.hardware().is_stuck = true;
    uart.send(&text(100), Patience::USUAL);
    uart.retry();
    let before = uart.hardware().now_ns;
    assert_eq!(uart.send(&text(100), Patience::LAST_WORDS), 0);
    uart.drain(Patience::LAST_WORDS);
    let waited = uart.hardware().now_ns - before;
    assert!(waited < 2_000_000_000, "{waited} ns");
}

#[test]
fn an_absent_uart_is_not_retried() {
    let mut uart = Uart::new(Fake { is_absent: true, ..Fake::new() });
    let _ = uart.start(Rate::FASTEST, Policy::Fifo, Peer::Reads);
    uart.retry();
    assert_eq!(uart.send(b"x", Patience::LAST_WORDS), 0);
}

#[test]
fn without_a_clock_a_stuck_uart_is_dropped_all_the_same() {
    let mut uart = started(Fake { has_clock: false, ..Fake::new() }, Policy::Fifo);
    uart.hardware().is_stuck = true;
    assert_eq!(uart.send(&text(100), Patience::USUAL), 16);
    assert!(!uart.is_alive());
    assert!((0..70).all(|_| uart.offer(b"x") == 0));
    uart.hardware().is_stuck = false;
    for _ in 0..70 {
        uart.offer(b"x");
    }
    assert!(uart.is_alive());
}

#[test]
fn a_uart_that_goes_away_is_dropped_at_once() {
    let mut uart = started(Fake::new(), Policy::Fifo);
    uart.hardware().is_absent = true;
    let before = uart.hardware().accesses();
    assert_eq!(uart.send(&text(100), Patience::USUAL), 0);
    assert!(uart.hardware().accesses() - before <= 2 && !uart.is_alive());
}

#[test]
fn an_absent_uart_is_never_written_to() {
    let mut uart = Uart::new(Fake { is_absent: true, ..Fake::new() });
    let _ = uart.start(Rate::FASTEST, Policy::Fifo, Peer::Reads);
    let before = uart.hardware().accesses();
    assert_eq!((uart.send(b"x", Patience::USUAL), uart.offer(b"x"), uart.receive(&mut [0; 4])), (0, 0, 0));
    uart.watch(Interrupts::RECEIVED);
    assert_eq!(uart.hardware().accesses(), before);
}

#[test]
fn interrupts_are_switched_only_when_that_changes_something() {
    let mut uart = started(Fake::new(), Policy::Fifo);
    let before = uart.hardware().writes;
    uart.watch(Interrupts::TRANSMITTER_EMPTY);
    uart.watch(Interrupts::TRANSMITTER_EMPTY);
    assert_eq!(uart.hardware().writes - before, 1);
    assert_eq!(uart.hardware().registers[Register::Interrupts as usize], 2);
}

#[test]
fn what_arrives_is_received_in_order() {
    let mut uart = started(Fake { byte_ns: 0, ..Fake::new() }, Policy::Fifo);
    uart.hardware().registers[Register::ModemControl as usize] = 0x10;
    uart.send(b"abc", Patience::USUAL);
    let mut into = [0; 8];
    assert_eq!(uart.receive(&mut into), 3);
    assert_eq!(&into[..3], b"abc");
}

#[test]
fn a_full_receiver_is_read_in_one_burst_and_the_rest_byte_by_byte() {
    let mut uart = started(Fake { byte_ns: 0, ..Fake::new() }, Policy::Fifo);
    uart.hardware().registers[Register::ModemControl as usize] = 0x10;
    uart.send(&text(16), Patience::USUAL);
    let reads = uart.counters().status_reads;
    let mut into = [0; 40];
    assert_eq!(uart.receive(&mut into), 16);
    assert_eq!(into[..16], text(16));
    assert_eq!(uart.counters().status_reads - reads, 4, "one for fourteen, one for each of the others, one in vain");
    uart.send(&text(16), Patience::USUAL);
    assert_eq!(uart.receive(&mut into[..5]), 5, "no more than there is room for");
    assert_eq!(uart.receive(&mut into[5..]), 11);
    assert_eq!(into[..16], text(16));
}

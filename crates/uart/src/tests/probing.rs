// SPDX-License-Identifier: MIT OR Apache-2.0

use super::fake::Fake;
use crate::{Absent, FifoDepth, Found, Identification, Peer, Policy, Rate, Register, Uart};

fn found(fake: Fake) -> Result<Found, Absent> {
    Uart::new(fake).start(Rate::FASTEST, Policy::Fifo, Peer::Reads)
}

fn depth(fake: Fake) -> FifoDepth {
    found(fake).expect("it is there").depth
}

#[test]
fn a_16550_is_found_with_its_fifo_and_its_pace() {
    let expected = Found { depth: FifoDepth::Bytes(16), is_paced: true, rate: Rate::FASTEST };
    assert_eq!(found(Fake::new()), Ok(expected));
}

#[test]
fn an_emulators_uart_is_not_paced() {
    assert_eq!(found(Fake { byte_ns: 0, ..Fake::new() }).map(|found| found.is_paced), Ok(false));
}

#[test]
fn an_empty_bus_is_absent() {
    assert_eq!(found(Fake { is_absent: true, ..Fake::new() }), Err(Absent));
}

#[test]
fn a_bus_that_remembers_the_last_value_is_absent() {
    assert_eq!(found(Fake { is_absent: true, remembers_bus: true, ..Fake::new() }), Err(Absent));
}

#[test]
fn an_8250_is_known_by_its_modem_lines() {
    let fake = Fake { has_scratch: false, claims: Identification::empty(), ..Fake::new() };
    assert_eq!(depth(fake), FifoDepth::None);
}

#[test]
fn neither_scratch_nor_loopback_is_absent() {
    assert_eq!(found(Fake { has_scratch: false, has_loopback: false, ..Fake::new() }), Err(Absent));
}

#[test]
fn the_first_16550s_broken_fifo_is_not_used() {
    assert_eq!(depth(Fake { claims: Identification::FIFO, ..Fake::new() }), FifoDepth::None);
}

#[test]
fn a_16750_has_64_bytes() {
    let fake = Fake { depth: 64, claims: Identification::all(), ..Fake::new() };
    assert_eq!(depth(fake), FifoDepth::Bytes(64));
}

#[test]
fn a_fifo_smaller_than_it_claims_is_counted() {
    assert_eq!(depth(Fake { depth: 7, ..Fake::new() }), FifoDepth::Bytes(7));
    assert_eq!(depth(Fake { depth: 1, ..Fake::new() }), FifoDepth::None);
}

#[test]
fn what_a_talking_peer_has_sent_is_not_lost() {
    let mut uart = Uart::new(Fake { byte_ns: 0, ..Fake::new() });
    let found = uart.start(Rate::FASTEST, Policy::Fifo, Peer::Talks).expect("there");
    assert_eq!(found.depth, FifoDepth::Bytes(16));
    let clears = uart.hardware().fifo_writes.iter().filter(|&&value| value & 2 != 0).count();
    assert_eq!((clears, uart.hardware().bursts.len()), (1, 0), "emptied once, and nothing is sent to itself");
}

#[test]
fn what_comes_from_outside_meanwhile_is_not_counted() {
    let mut fake = Fake { byte_ns: 0, hears_in_loopback: 3, ..Fake::new() };
    fake.depth = 16;
    assert_eq!(depth(fake), FifoDepth::Bytes(16));
}

#[test]
fn a_uart_that_loops_nothing_back_is_believed() {
    assert_eq!(depth(Fake { has_loopback: false, ..Fake::new() }), FifoDepth::Bytes(16));
}

#[test]
fn a_stuck_uart_does_not_keep_the_boot() {
    let mut uart = Uart::new(Fake { is_stuck: true, ..Fake::new() });
    let _ = uart.start(Rate::FASTEST, Policy::Fifo, Peer::Reads);
    assert!(uart.hardware().now_ns < 20_000_000, "{} ns", uart.hardware().now_ns);
    let mut uart = Uart::new(Fake { is_stuck: true, has_clock: false, ..Fake::new() });
    let _ = uart.start(Rate::FASTEST, Policy::Fifo, Peer::Reads);
    assert!(uart.hardware().accesses() < 200_000);
}

#[test]
fn the_rate_is_set_and_the_latch_closed() {
    let mut uart = Uart::new(Fake::new());
    let rate = Rate::from_baud(9600).expect("a divisor");
    uart.start(rate, Policy::Fifo, Peer::Reads).expect("there");
    let registers = uart.hardware().registers;
    assert_eq!(registers[Register::Data as usize], 12);
    assert_eq!(registers[Register::Interrupts as usize], 0);
    assert_eq!(registers[Register::LineControl as usize], 3);
    assert_eq!(registers[Register::ModemControl as usize], 0b1011);
}

#[test]
fn nothing_of_the_probe_reaches_the_line() {
    let mut uart = Uart::new(Fake::new());
    uart.start(Rate::FASTEST, Policy::Fifo, Peer::Reads).expect("there");
    assert!(uart.hardware().received.is_empty());
}

#[test]
fn a_rate_divides_the_fastest() {
    assert_eq!(Rate::from_baud(115_200), Some(Rate::FASTEST));
    assert_eq!(Rate::from_baud(9600).map(Rate::divisor), Some(12));
    assert_eq!(Rate::from_baud(0), None);
    assert_eq!(Rate::from_baud(100_000), None);
    assert_eq!(Rate::from_baud(1), None, "the divisor has 16 bits");
    assert_eq!(Rate::FASTEST.byte_ns(), 86_805);
}

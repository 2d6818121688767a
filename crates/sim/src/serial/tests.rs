// SPDX-License-Identifier: MIT OR Apache-2.0

use proptest::prelude::*;
use uart::{Policy, Rate};

use super::*;

fn printed(setup: Setup, policy: Policy, way: Way) -> Outcome {
    printed_of(20, setup, policy, way)
}

fn printed_of(disks: usize, setup: Setup, policy: Policy, way: Way) -> Outcome {
    let lines = storm(disks);
    let outcome = print(setup, policy, way, &lines).expect("it is there");
    assert_eq!((&outcome.received, outcome.lost), (&lines.concat().into_bytes(), 0));
    outcome
}

#[test]
fn the_fifo_fills_the_wire_and_leaves_the_cpu_alone() {
    let outcome = printed(Setup::good(), Policy::Fifo, Way::Interrupts);
    assert!(outcome.wire_share() >= 0.99, "{}", outcome.wire_share());
    assert!(outcome.cpu_share() <= 0.03, "{}", outcome.cpu_share());
    assert!(outcome.accesses_per_byte() <= 1.07, "{}", outcome.accesses_per_byte());
}

#[test]
fn slow_status_reads_do_not_slow_the_wire() {
    for way in [Way::Interrupts, Way::Polling] {
        let outcome = printed(Setup::slow(), Policy::Fifo, way);
        assert!(outcome.wire_share() >= 0.95, "{way:?}: {}", outcome.wire_share());
    }
}

#[test]
fn polling_reads_the_status_only_when_the_fifo_can_be_empty() {
    let outcome = printed(Setup::slow(), Policy::Fifo, Way::Polling);
    // Without the clock's help a fill is checked a hundred times.
    assert!(outcome.polls < outcome.received.len() as u64 / 16 * 12, "{}", outcome.polls);
}

#[test]
fn byte_by_byte_takes_two_accesses_and_an_interrupt_each() {
    let outcome = printed(Setup::good(), Policy::Byte, Way::Interrupts);
    assert!(outcome.accesses_per_byte() >= 2.0, "{}", outcome.accesses_per_byte());
    assert!(outcome.cpu_share() > 0.04, "{}", outcome.cpu_share());
}

#[test]
fn interrupts_are_masked_for_a_fill_at_most() {
    let setup = Setup::slow();
    let fill_ns = setup.handler_ns + setup.status_ns.end() + 16 * setup.access_ns;
    let outcome = printed(setup, Policy::Fifo, Way::Interrupts);
    assert!(outcome.longest_off_ns <= fill_ns, "{}", outcome.longest_off_ns);
    assert_eq!(outcome.late_ticks, 0);
}

#[test]
fn a_logger_that_prints_makes_ticks_late() {
    assert!(printed(Setup::slow(), Policy::Byte, Way::Polling).late_ticks > 50);
}

#[test]
fn without_a_fifo_nothing_is_lost() {
    for way in [Way::Interrupts, Way::Polling] {
        printed(Setup::without_fifo(), Policy::Fifo, way);
    }
}

#[test]
fn a_uart_that_dies_is_given_up_and_what_it_took_is_in_order() {
    let lines = storm(20);
    let text = lines.concat().into_bytes();
    for way in [Way::Interrupts, Way::Polling] {
        let outcome = print(Setup::dying(), Policy::Fifo, way, &lines).expect("it lived when it was searched for");
        assert!(text.starts_with(&outcome.received) && outcome.received.len() > 100);
        assert!(way == Way::Interrupts || (outcome.drops, outcome.refused > 0) == (1, true), "{outcome:?}");
        assert!(outcome.longest_off_ns < 100_000_000);
    }
}

#[test]
fn a_fifo_is_not_counted_deeper_by_bytes_that_leave_meanwhile() {
    for access_ns in (100..4_000).step_by(30) {
        let setup = Setup { claims: 64, depth: 36, access_ns, status_ns: 17_000..=23_000, ..Setup::good() };
        // A few fills are enough to lose bytes.
        printed_of(1, setup, Policy::Fifo, Way::Polling);
    }
}

#[test]
fn the_storm_is_the_log_of_six_hundred_disks() {
    let bytes = storm(600).concat().len();
    assert!((380_000..440_000).contains(&bytes), "{bytes}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_byte_arrives_once_in_order_whatever_the_timing(
        seed in any::<u64>(),
        (claims, depth) in prop_oneof![Just((1, 1)), (2usize..=16).prop_map(|depth| (16, depth)), (2usize..=64).prop_map(|depth| (64, depth))],
        divisor in 1u32..=12,
        access_ns in 100u64..4_000,
        status in (100u64..20_000, 0u64..20_000),
        latency in (0u64..200_000, 0u64..2_000_000),
        is_byte in any::<bool>(),
        is_polling in any::<bool>(),
        lines in prop::collection::vec("[a-z ]{0,90}\n", 0..20),
    ) {
        let setup = Setup {
            depth,
            claims,
            rate: Rate::from_baud(115_200 / divisor).unwrap_or(Rate::FASTEST),
            access_ns,
            status_ns: status.0..=status.0 + status.1,
            latency_ns: latency.0..=latency.0 + latency.1,
            seed,
            ..Setup::good()
        };
        let policy = if is_byte { Policy::Byte } else { Policy::Fifo };
        let way = if is_polling { Way::Polling } else { Way::Interrupts };
        let outcome = print(setup, policy, way, &lines).expect("it is there");
        prop_assert_eq!(outcome.received, lines.concat().into_bytes());
        prop_assert_eq!((outcome.lost, outcome.drops), (0, 0));
    }
}

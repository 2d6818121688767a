// SPDX-License-Identifier: MIT OR Apache-2.0
//! One-shot, periodic and TSC-deadline timers.
use super::*;

const VECTOR: u32 = 0xec;
const MASKED: u32 = 1 << 16;
const PERIODIC: u32 = 1 << 17;
const DEADLINE: u32 = 2 << 17;
const BY_ONE: u32 = 0b1011;

fn after(ticks: u64) -> GuestTsc {
    GuestTsc(NOW.0 + ticks)
}

/// A timer with this local vector and divider, started with 1,000.
fn started(local_vector: u32, divide: u32) -> Lapic {
    let mut lapic = xapic(0);
    let _ = lapic.write_mmio(0x320, local_vector, NOW);
    let _ = lapic.write_mmio(0x3e0, divide, NOW);
    assert_eq!(lapic.write_mmio(0x380, 1000, NOW), Action::TimerChanged);
    lapic
}

fn count(lapic: &mut Lapic, ticks: u64) -> u32 {
    lapic.read_mmio(0x390, after(ticks))
}

#[test]
fn a_one_shot_interrupts_once() {
    let mut lapic = started(VECTOR, BY_ONE);
    assert_eq!(lapic.timer_deadline(), Some(after(1000)));
    assert!(!lapic.expire_timer(after(999)));
    assert!(lapic.expire_timer(after(1000)));
    assert_eq!((lapic.pending(), lapic.timer_deadline()), (Some(0xec), None));
    assert!(!lapic.expire_timer(after(5000)));
}

#[test]
fn a_count_runs_down_at_the_dividers_pace() {
    for (divide, by) in [(0, 2), (1, 4), (2, 8), (3, 16), (8, 32), (9, 64), (10, 128), (11, 1)] {
        let mut lapic = started(VECTOR, divide);
        assert_eq!(lapic.timer_deadline(), Some(after(1000 * by)), "by {by}");
        assert_eq!(count(&mut lapic, 0), 1000);
        assert_eq!(count(&mut lapic, 400 * by), 600);
        assert_eq!(count(&mut lapic, 1000 * by - 1), 1);
        assert_eq!(count(&mut lapic, 1000 * by), 0);
    }
}

#[test]
fn a_periodic_timer_does_not_drift() {
    let mut lapic = started(VECTOR | PERIODIC, BY_ONE);
    for period in 1..10 {
        assert!(lapic.expire_timer(after(period * 1000 + period * 7)));
        assert_eq!(lapic.timer_deadline(), Some(after((period + 1) * 1000)));
    }
}

#[test]
fn missed_periods_are_skipped_in_one_step() {
    let mut lapic = started(VECTOR | PERIODIC, BY_ONE);
    assert!(lapic.expire_timer(after(1_000_000_000_500)));
    assert_eq!(lapic.timer_deadline(), Some(after(1_000_000_001_000)));
    let mut lapic = started(VECTOR | PERIODIC, BY_ONE);
    assert!(lapic.expire_timer(after(3000)));
    assert_eq!(lapic.timer_deadline(), Some(after(4000)));
}

#[test]
fn a_periodic_count_wraps_even_before_its_interrupt() {
    let mut lapic = started(VECTOR | PERIODIC, BY_ONE);
    assert_eq!([0, 1, 999, 1000, 1001, 2500].map(|ticks| count(&mut lapic, ticks)), [1000, 999, 1, 1000, 999, 500]);
}

#[test]
fn a_count_of_zero_stops_the_timer() {
    let mut lapic = started(VECTOR | PERIODIC, BY_ONE);
    let _ = lapic.write_mmio(0x380, 0, after(10));
    assert_eq!((lapic.timer_deadline(), count(&mut lapic, 20)), (None, 0));
}

#[test]
fn a_masked_timer_counts_without_interrupting() {
    let mut lapic = started(VECTOR | MASKED, BY_ONE);
    assert_eq!((lapic.timer_deadline(), count(&mut lapic, 300)), (None, 700));
    let _ = lapic.write_mmio(0x320, VECTOR, after(2000));
    assert_eq!((lapic.timer_deadline(), lapic.pending()), (None, None));
}

#[test]
fn a_timer_unmasked_in_time_interrupts() {
    let mut lapic = started(VECTOR | MASKED, BY_ONE);
    assert_eq!(lapic.write_mmio(0x320, VECTOR, after(500)), Action::TimerChanged);
    assert_eq!(lapic.timer_deadline(), Some(after(1000)));
}

#[test]
fn masking_a_timer_that_was_due_comes_too_late() {
    let mut lapic = started(VECTOR, BY_ONE);
    let _ = lapic.write_mmio(0x320, VECTOR | MASKED, after(1000));
    assert_eq!(lapic.pending(), Some(0xec));
}

#[test]
fn a_new_divider_applies_to_what_is_left() {
    let mut lapic = started(VECTOR, BY_ONE);
    let _ = lapic.write_mmio(0x3e0, 0, after(400));
    assert_eq!(lapic.timer_deadline(), Some(after(400 + 600 * 2)));
    assert_eq!(count(&mut lapic, 400), 600);
}

#[test]
fn changing_between_one_shot_and_periodic_keeps_the_count() {
    let mut lapic = started(VECTOR, BY_ONE);
    let _ = lapic.write_mmio(0x320, VECTOR | PERIODIC, after(100));
    assert!(lapic.expire_timer(after(1000)));
    assert_eq!(lapic.timer_deadline(), Some(after(2000)));
}

#[test]
fn a_tsc_deadline_interrupts_when_it_has_come() {
    let mut lapic = xapic(0);
    let _ = lapic.write_mmio(0x320, VECTOR | DEADLINE, NOW);
    assert_eq!(lapic.set_tsc_deadline(NOW.0 + 500, NOW), Action::TimerChanged);
    assert_eq!((lapic.tsc_deadline(NOW), lapic.timer_deadline()), (NOW.0 + 500, Some(after(500))));
    assert!(lapic.expire_timer(after(501)));
    assert_eq!((lapic.tsc_deadline(after(501)), lapic.timer_deadline()), (0, None));
}

#[test]
fn a_tsc_deadline_in_the_past_is_due_at_once() {
    let mut lapic = xapic(0);
    let _ = lapic.write_mmio(0x320, VECTOR | DEADLINE, NOW);
    let _ = lapic.set_tsc_deadline(1, NOW);
    assert!(lapic.expire_timer(NOW));
}

#[test]
fn a_tsc_deadline_of_zero_stops_the_timer() {
    let mut lapic = xapic(0);
    let _ = lapic.write_mmio(0x320, VECTOR | DEADLINE, NOW);
    let _ = lapic.set_tsc_deadline(NOW.0 + 500, NOW);
    let _ = lapic.set_tsc_deadline(0, NOW);
    assert!(!lapic.expire_timer(after(1000)));
}

#[test]
fn counting_and_deadlines_do_not_mix() {
    let mut lapic = started(VECTOR, BY_ONE);
    assert_eq!(lapic.set_tsc_deadline(NOW.0 + 5, NOW), Action::None);
    assert_eq!(lapic.tsc_deadline(NOW), 0);
    let _ = lapic.write_mmio(0x320, VECTOR | DEADLINE, NOW);
    assert_eq!((lapic.timer_deadline(), count(&mut lapic, 10)), (None, 0));
    let _ = lapic.write_mmio(0x380, 77, NOW);
    assert_eq!((lapic.timer_deadline(), lapic.read_mmio(0x380, NOW)), (None, 1000));
}

#[test]
fn the_reserved_mode_never_runs() {
    let mut lapic = started(VECTOR | PERIODIC | DEADLINE, BY_ONE);
    assert_eq!((lapic.timer_deadline(), lapic.expire_timer(GuestTsc(u64::MAX))), (None, false));
}

#[test]
fn a_timer_with_an_illegal_vector_is_an_error() {
    let mut lapic = started(3, BY_ONE);
    assert!(!lapic.expire_timer(after(1000)));
    let _ = lapic.write_mmio(0x280, 0, NOW);
    assert_eq!(lapic.read_mmio(0x280, NOW), 0x40);
}

#[test]
fn disabling_by_software_masks_the_timer() {
    let mut lapic = started(VECTOR, BY_ONE);
    let _ = lapic.write_mmio(0xf0, 0xff, NOW);
    assert_eq!((lapic.timer_deadline(), lapic.expire_timer(after(1000))), (None, false));
}

#[test]
fn the_end_of_time_is_no_overflow() {
    let mut lapic = started(VECTOR | PERIODIC, BY_ONE);
    let end = GuestTsc(u64::MAX);
    assert!(lapic.expire_timer(end));
    let _ = lapic.write_mmio(0x380, u32::MAX, end);
    assert_eq!(lapic.timer_deadline(), Some(end));
    lapic.expire_timer(end);
    lapic.read_mmio(0x390, end);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Slots and their shares.

use super::*;

/// Ten thousand slots by one share, then a thousand turns of ten slots each by another: each of them too short to move
/// a share of all by its last bit.
#[test]
fn shares_survive_turns_that_are_too_short_to_move_them() {
    let core = core();
    let mut guest = Guest::new(&core, 0, 0);
    guest.driver.switch_in(CounterSet(!0));
    guest.writes(&[(FIXED_CONTROL, 0x3000), (SLOTS, 0), (METRICS, 0), (CONTROL, 1 << 35 | 1 << 48)]);
    guest.run(&Activity { slots: [10_000, 0, 0, 0, 0, 0, 0, 0], ..Activity::default() });
    for _ in 0..1000 {
        guest.driver.switch_out();
        core.0.borrow_mut().run(&host_work(), &mut Forbidden);
        guest.driver.switch_in(CounterSet(!0));
        guest.run(&Activity { slots: [0, 0, 10, 0, 0, 0, 0, 0], ..Activity::default() });
    }
    assert_eq!(guest.driver.read_counter(1 << 30 | 3), Ok(20_000));
    assert_eq!(guest.driver.read_counter(1 << 29), Ok(0x80_0080), "half and half");
}

#[test]
fn shares_that_a_guest_puts_back_go_on_from_there() {
    let mut guest = Guest::new(&core(), 0, 0);
    guest.driver.switch_in(CounterSet(!0));
    guest.writes(&[(FIXED_CONTROL, 0x3000), (CONTROL, 1 << 35 | 1 << 48), (SLOTS, 300), (METRICS, 0xaa00_0055)]);
    assert_eq!((guest.driver.read(SLOTS), guest.driver.read(METRICS)), (Ok(300), Ok(0xaa00_0055)));
    guest.run(&Activity { slots: [100, 0, 0, 0, 0, 0, 0, 0], ..Activity::default() });
    assert_eq!((guest.driver.read(SLOTS), guest.driver.read(METRICS)), (Ok(400), Ok(0x8000_0080)), "a half each");
}

#[test]
fn slots_that_overflow_are_reported() {
    let mut guest = Guest::new(&core(), 0, 0);
    guest.driver.switch_in(CounterSet(!0));
    guest.writes(&[(FIXED_CONTROL, 0xb000), (SLOTS, MASK - 9), (METRICS, 0), (CONTROL, 1 << 35 | 1 << 48)]);
    guest.run(&Activity { slots: [5; 8], ..Activity::default() });
    assert_eq!((guest.driver.read(STATUS), guest.interrupts), (Ok(1 << 35 | 1 << 48), 1));
    assert_eq!(guest.driver.read(SLOTS), Ok(30));
    guest.writes(&[(CLEAR, 1 << 35 | 1 << 48)]);
    assert_eq!(guest.driver.read(STATUS), Ok(0));
}

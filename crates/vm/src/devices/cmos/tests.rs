// SPDX-License-Identifier: MIT OR Apache-2.0
use proptest::prelude::*;

use super::*;

/// 2024-02-29 23:59:58 UTC, a Thursday.
const LEAP_DAY: u64 = 1_709_251_198;
const TIME_INDEXES: [u8; 8] = [0x00, 0x02, 0x04, 0x06, 0x07, 0x08, 0x09, 0x32];

fn get(cmos: &mut Cmos, index: u8, now: u64) -> u8 {
    cmos.write(0, index, now);
    cmos.read(1, now)
}

fn set(cmos: &mut Cmos, index: u8, value: u8, now: u64) {
    cmos.write(0, index, now);
    cmos.write(1, value, now);
}

fn time(cmos: &mut Cmos, now: u64) -> [u8; 8] {
    TIME_INDEXES.map(|index| get(cmos, index, now))
}

#[test]
fn the_time_is_shown_in_bcd_and_24_hours() {
    assert_eq!(time(&mut Cmos::new(), LEAP_DAY), [0x58, 0x59, 0x23, 0x05, 0x29, 0x02, 0x24, 0x20]);
    assert_eq!(time(&mut Cmos::new(), LEAP_DAY + 2), [0, 0, 0, 0x06, 0x01, 0x03, 0x24, 0x20]);
    assert_eq!(time(&mut Cmos::new(), 0), [0, 0, 0, 0x05, 0x01, 0x01, 0x70, 0x19]);
}

#[test]
fn status_reads_valid_and_never_updating() {
    let mut cmos = Cmos::new();
    set(&mut cmos, REGISTER_A, 0xff, 0);
    assert_eq!(get(&mut cmos, REGISTER_A, 0), 0x7f);
    assert_eq!(get(&mut cmos, REGISTER_B, 0), 0x02);
    assert_eq!(get(&mut cmos, REGISTER_C, 0), 0);
    assert_eq!(get(&mut cmos, REGISTER_D, 0), 0x80);
}

#[test]
fn interrupts_cannot_be_enabled() {
    let mut cmos = Cmos::new();
    set(&mut cmos, REGISTER_B, 0x72, 0);
    assert_eq!(get(&mut cmos, REGISTER_B, 0), 0x02);
}

#[test]
fn binary_and_twelve_hours_are_shown_on_request() {
    let mut cmos = Cmos::new();
    set(&mut cmos, REGISTER_B, BINARY, LEAP_DAY);
    assert_eq!(time(&mut cmos, LEAP_DAY), [58, 59, 0x80 | 11, 5, 29, 2, 24, 20]);
    set(&mut cmos, REGISTER_B, 0, LEAP_DAY);
    assert_eq!(get(&mut cmos, 0x04, LEAP_DAY), 0x91);
    assert_eq!(get(&mut cmos, 0x04, LEAP_DAY + 2), 0x12);
    assert_eq!(get(&mut cmos, 0x04, LEAP_DAY + 2 + 12 * 3600), 0x92);
}

#[test]
fn a_clock_set_under_the_set_bit_runs_on_from_there() {
    let mut cmos = Cmos::new();
    set(&mut cmos, REGISTER_B, SET | HOURS_24, LEAP_DAY);
    for (index, value) in TIME_INDEXES.into_iter().zip([0x30, 0x45, 0x12, 0x01, 0x31, 0x12, 0x99, 0x19]) {
        set(&mut cmos, index, value, LEAP_DAY);
    }
    assert_eq!(get(&mut cmos, 0x00, LEAP_DAY + 20), 0x30);
    set(&mut cmos, REGISTER_B, HOURS_24, LEAP_DAY + 20);
    assert_eq!(time(&mut cmos, LEAP_DAY + 30), [0x40, 0x45, 0x12, 0x06, 0x31, 0x12, 0x99, 0x19]);
}

#[test]
fn a_single_register_can_be_set_while_the_clock_runs() {
    let mut cmos = Cmos::new();
    set(&mut cmos, 0x04, 0x08, LEAP_DAY);
    assert_eq!(time(&mut cmos, LEAP_DAY), [0x58, 0x59, 0x08, 0x05, 0x29, 0x02, 0x24, 0x20]);
}

#[test]
fn a_day_that_its_month_lacks_becomes_its_last_day() {
    let mut cmos = Cmos::new();
    set(&mut cmos, 0x09, 0x23, LEAP_DAY);
    assert_eq!(get(&mut cmos, 0x07, LEAP_DAY), 0x28);
    set(&mut cmos, 0x08, 0xff, LEAP_DAY);
    assert_eq!(get(&mut cmos, 0x08, LEAP_DAY), 0x12);
}

#[test]
fn memory_keeps_bytes_and_the_nmi_gate_is_ignored() {
    let mut cmos = Cmos::new();
    set(&mut cmos, 0x80 | 0x0f, 0xa5, 0);
    set(&mut cmos, 0x7f, 0x5a, 0);
    assert_eq!((get(&mut cmos, 0x0f, 0), get(&mut cmos, 0xff, 0)), (0xa5, 0x5a));
}

#[test]
fn the_index_cannot_be_read_back_and_other_ports_are_absent() {
    assert_eq!((Cmos::new().read(0, 0), Cmos::new().read(2, 0)), (0xff, 0xff));
}

#[test]
fn time_beyond_the_calendar_stops_at_its_end() {
    assert_eq!(time(&mut Cmos::new(), u64::MAX)[5..], [0x12, 0x99, 0x99]);
}

#[test]
fn a_state_no_clock_can_be_in_is_refused() {
    let field = |change: fn(&mut CmosState)| {
        let mut state = Cmos::new().state();
        change(&mut state);
        Cmos::from_state(state).unwrap_err().field
    };
    assert_eq!(field(|state| state.index = 0x80), "cmos.index");
    assert_eq!(field(|state| state.register_a = 0x80), "cmos.register_a");
    assert_eq!(field(|state| state.register_b = 0x10), "cmos.register_b");
}

type Step = (u8, u8, u64);

/// Mostly the ports and registers that do something.
fn any_step() -> impl Strategy<Value = Step> {
    let index = prop_oneof![prop::sample::select(TIME_INDEXES.to_vec()), 0x0au8..0x0e, any::<u8>()];
    prop_oneof![index.prop_map(|index| (0, index, 0)), (0u8..3, any::<u8>(), any::<u64>())]
}

fn take(cmos: &mut Cmos, (port_offset, value, now): Step) -> u8 {
    cmos.write(port_offset, value, now);
    cmos.read(1, now)
}

proptest! {
    #[test]
    fn every_time_survives_the_registers(
        unix_seconds in calendar::EARLIEST..=LATEST, is_binary: bool, is_24_hours: bool,
    ) {
        let format = RegisterFormat { is_binary, is_24_hours };
        prop_assert_eq!(calendar::decode(&calendar::encode(unix_seconds, format), format), unix_seconds);
    }

    #[test]
    fn a_restored_clock_behaves_the_same(
        before in prop::collection::vec(any_step(), 0..64),
        after in prop::collection::vec(any_step(), 0..64),
    ) {
        let mut cmos = Cmos::new();
        for step in before {
            take(&mut cmos, step);
        }
        let mut restored = Cmos::from_state(cmos.state()).unwrap();
        for step in after {
            prop_assert_eq!(take(&mut cmos, step), take(&mut restored, step));
        }
        prop_assert_eq!(cmos, restored);
    }

    #[test]
    fn a_hostile_state_is_refused_or_harmless(
        registers: [u8; 3], offset_seconds: i64, held_time: [u8; 8], steps in prop::collection::vec(any_step(), 0..32),
    ) {
        let [index, register_a, register_b] = registers;
        let ram = [0; CMOS_BYTES];
        let state = CmosState { index, register_a, register_b, offset_seconds, held_time, ram };
        if let Ok(mut cmos) = Cmos::from_state(state) {
            for step in steps {
                take(&mut cmos, step);
                prop_assert!(Cmos::from_state(cmos.state()).is_ok());
            }
        }
    }
}

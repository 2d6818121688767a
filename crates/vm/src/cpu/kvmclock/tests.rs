// SPDX-License-Identifier: MIT OR Apache-2.0
use std::cell::RefCell;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::addr::AccessSize;
use crate::testing::FakeMemory;

const AREA: u64 = 0x1000;

fn time() -> ClockTime {
    ClockTime {
        tsc: GuestTsc(0x1122_3344_5566),
        system_time_ns: 0x0102_0304_0506,
        scale: TscScale::from_hz(2_500_000_000).unwrap(),
        is_stable: true,
        was_paused: false,
    }
}

fn registered() -> VcpuClock {
    let mut clock = VcpuClock::default();
    clock.write_msr(AREA | 1).unwrap();
    clock
}

/// Memory that keeps every write.
struct Journal(RefCell<Vec<(u64, Vec<u8>)>>);

impl GuestMemory for Journal {
    fn read(&self, _: Gpa, into: &mut [u8]) -> Result<(), OutOfRange> {
        into.fill(0);
        Ok(())
    }
    fn write(&self, gpa: Gpa, from: &[u8]) -> Result<(), OutOfRange> {
        self.0.borrow_mut().push((gpa.0, from.to_vec()));
        Ok(())
    }
    fn compare_exchange(&self, gpa: Gpa, size: AccessSize, _: u64, _: u64) -> Result<bool, OutOfRange> {
        Err(OutOfRange { gpa, bytes: size.bytes() })
    }
    fn size_bytes(&self) -> u64 {
        u64::MAX
    }
}

#[test]
fn the_area_is_laid_out_as_linux_reads_it() {
    let memory = FakeMemory::new(0x2000);
    registered().publish(&memory, &time()).unwrap();
    let bytes = memory.bytes(Gpa(AREA), 32);
    assert_eq!(bytes[..8], [2, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[8..16], 0x1122_3344_5566_u64.to_le_bytes());
    assert_eq!(bytes[16..24], 0x0102_0304_0506_u64.to_le_bytes());
    // 0.4 ns a tick: shifted right by one, times 0.8.
    assert_eq!(bytes[24..28], 0xcccc_cccd_u32.to_le_bytes());
    assert_eq!(bytes[28..], [0xff, 1, 0, 0]);
}

#[test]
fn the_version_is_odd_while_the_body_is_written() {
    let memory = Journal(RefCell::default());
    registered().publish(&memory, &time()).unwrap();
    let writes: Vec<_> = memory.0.into_inner().into_iter().map(|(gpa, bytes)| (gpa, bytes.len(), bytes[0])).collect();
    assert_eq!(writes, [(AREA, 4, 1), (AREA + 4, 28, 0), (AREA, 4, 2)]);
}

#[test]
fn each_publication_has_a_new_even_version() {
    let memory = FakeMemory::new(0x2000);
    let mut clock = VcpuClock::from_state(&VcpuClockState { msr: AREA | 1, version: u32::MAX - 1 }).unwrap();
    for expected in [0, 2, 4_u32] {
        clock.publish(&memory, &time()).unwrap();
        assert_eq!(memory.bytes(Gpa(AREA), 4), expected.to_le_bytes());
    }
}

#[test]
fn a_pause_is_reported() {
    let memory = FakeMemory::new(0x2000);
    registered().publish(&memory, &ClockTime { is_stable: false, was_paused: true, ..time() }).unwrap();
    assert_eq!(memory.bytes(Gpa(AREA + 29), 1), [2]);
}

#[test]
fn nothing_is_written_while_the_clock_is_off() {
    let memory = Journal(RefCell::default());
    let mut clock = VcpuClock::default();
    clock.publish(&memory, &time()).unwrap();
    clock.write_msr(AREA).unwrap();
    clock.publish(&memory, &time()).unwrap();
    assert_eq!(clock.read_msr(), AREA);
    assert!(memory.0.into_inner().is_empty());
}

#[test]
fn an_area_that_is_not_aligned_is_refused_and_changes_nothing() {
    let mut clock = registered();
    assert_eq!(clock.write_msr(0x2002 | 1), Err(GeneralProtection));
    assert_eq!(clock.read_msr(), AREA | 1);
}

#[test]
fn an_area_outside_of_memory_is_an_error_and_no_more() {
    let memory = FakeMemory::new(0x2000);
    for area in [0x3000, 0x1ff0, !3] {
        let mut clock = VcpuClock::default();
        clock.write_msr(area | 1).unwrap();
        assert!(clock.publish(&memory, &time()).is_err());
        assert!(write_wall_clock(&memory, Gpa(area + 12 * u64::from(area < 0x2000)), 0).is_err());
    }
}

#[test]
fn the_state_survives_and_an_odd_version_is_refused() {
    let mut clock = registered();
    clock.publish(&FakeMemory::new(0x2000), &time()).unwrap();
    assert_eq!(VcpuClock::from_state(&clock.state()), Ok(clock));
    assert!(VcpuClock::from_state(&VcpuClockState { version: 3, ..clock.state() }).is_err());
    assert!(VcpuClock::from_state(&VcpuClockState { msr: 2, ..clock.state() }).is_err());
}

#[test]
fn the_wall_clock_is_seconds_and_nanoseconds_at_boot() {
    let memory = FakeMemory::new(0x2000);
    memory.write(Gpa(AREA), &[7]).unwrap();
    write_wall_clock(&memory, Gpa(AREA), 1_700_000_000_123_456_789).unwrap();
    let words: Vec<_> =
        memory.bytes(Gpa(AREA), 12).chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
    assert_eq!(words, [8, 1_700_000_000, 123_456_789]);
}

#[test]
fn frequencies_that_no_cpu_has_are_refused() {
    for hz in [0, SLOWEST_HZ - 1, FASTEST_HZ + 1, u64::MAX] {
        assert_eq!(TscScale::from_hz(hz), None);
    }
}

#[test]
fn one_gigahertz_is_one_nanosecond_a_tick() {
    let scale = TscScale::from_hz(1_000_000_000).unwrap();
    assert_eq!((scale.multiplier, scale.shift), (1 << 31, 1));
    assert_eq!(scale.nanoseconds(123_456_789), 123_456_789);
}

proptest! {
    #[test]
    fn an_hour_is_right_to_less_than_one_part_per_billion(hz in SLOWEST_HZ..=FASTEST_HZ) {
        let scale = TscScale::from_hz(hz).unwrap();
        prop_assert!(scale.multiplier >= 1 << 31);
        let exact = 3_600_000_000_000_u64;
        let counted = scale.nanoseconds(hz * 3600);
        // A right shift drops at most one tick of the shifted clock.
        let dropped = 1_000_000_000 / hz + 1;
        prop_assert!(counted.abs_diff(exact) <= 3600 + dropped, "{counted}");
    }

    #[test]
    fn time_never_runs_backwards(hz in SLOWEST_HZ..=FASTEST_HZ, ticks in 0..1_u64 << 52, more in 0..1_u64 << 20) {
        let scale = TscScale::from_hz(hz).unwrap();
        prop_assert!(scale.nanoseconds(ticks) <= scale.nanoseconds(ticks + more));
    }

    #[test]
    fn any_value_of_the_msr_is_safe(value: u64) {
        let mut clock = VcpuClock::default();
        if clock.write_msr(value).is_ok() {
            let _ = clock.publish(&FakeMemory::new(64), &time());
        }
        let _ = TscScale::from_hz(value.max(1)).map(|scale| scale.nanoseconds(value));
    }
}

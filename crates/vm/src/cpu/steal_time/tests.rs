// SPDX-License-Identifier: MIT OR Apache-2.0
use std::cell::RefCell;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::addr::AccessSize;
use crate::testing::FakeMemory;

const AREA: u64 = 0x1040;

fn registered(memory: &FakeMemory) -> StealTime {
    let mut steal = StealTime::default();
    steal.write_msr(memory, AREA | 1).unwrap();
    steal
}

fn reported_ns(memory: &FakeMemory) -> u64 {
    u64::from_le_bytes(memory.bytes(Gpa(AREA), 8).try_into().unwrap())
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
    registered(&memory).publish(&memory, 0x0102_0304_0506, false).unwrap();
    let bytes = memory.bytes(Gpa(AREA), 64);
    assert_eq!(bytes[..8], 0x0102_0304_0506_u64.to_le_bytes());
    assert_eq!(bytes[8..12], 2_u32.to_le_bytes());
    assert_eq!(bytes[12..], [0; 52]);
}

#[test]
fn the_version_is_odd_while_the_body_is_written() {
    let memory = Journal(RefCell::default());
    let mut steal = StealTime::default();
    steal.write_msr(&memory, AREA | 1).unwrap();
    steal.publish(&memory, 7, false).unwrap();
    let writes: Vec<_> = memory.0.into_inner().into_iter().map(|(gpa, bytes)| (gpa - AREA, bytes[0])).collect();
    assert_eq!(writes, [(8, 1), (0, 7), (16, 0), (8, 2)]);
}

#[test]
fn a_preempted_cpu_is_marked_until_it_runs_again() {
    let memory = FakeMemory::new(0x2000);
    let mut steal = registered(&memory);
    steal.mark_preempted(&memory).unwrap();
    assert_eq!(memory.bytes(Gpa(AREA + 16), 1), [1]);
    steal.publish(&memory, 0, false).unwrap();
    assert_eq!(memory.bytes(Gpa(AREA + 16), 1), [0]);
}

#[test]
fn the_register_reads_back_what_was_written_and_nothing_is_written_while_it_is_off() {
    let memory = Journal(RefCell::default());
    let mut steal = StealTime::default();
    steal.publish(&memory, 1, false).unwrap();
    steal.write_msr(&memory, AREA).unwrap();
    steal.publish(&memory, 2, false).unwrap();
    steal.mark_preempted(&memory).unwrap();
    assert_eq!(steal.read_msr(), AREA);
    assert!(memory.0.into_inner().is_empty());
}

#[test]
fn a_reserved_bit_is_refused_and_changes_nothing() {
    let memory = FakeMemory::new(0x2000);
    let mut steal = registered(&memory);
    for bit in 1..6 {
        assert_eq!(steal.write_msr(&memory, 0x1080 | 1 << bit | 1), Err(GeneralProtection));
    }
    assert_eq!(steal.read_msr(), AREA | 1);
}

#[test]
fn time_stolen_while_there_was_no_area_is_not_reported() {
    let memory = FakeMemory::new(0x2000);
    let mut steal = StealTime::default();
    steal.publish(&memory, 1_000_000, false).unwrap();
    steal.write_msr(&memory, AREA | 1).unwrap();
    steal.publish(&memory, 1_000_005, false).unwrap();
    assert_eq!(reported_ns(&memory), 5);
}

#[test]
fn a_cpu_that_comes_back_on_line_goes_on_from_where_it_was() {
    let memory = FakeMemory::new(0x2000);
    let mut steal = registered(&memory);
    steal.publish(&memory, 100, false).unwrap();
    steal.write_msr(&memory, 0).unwrap();
    steal.publish(&memory, 300, false).unwrap();
    steal.write_msr(&memory, AREA | 1).unwrap();
    steal.publish(&memory, 310, false).unwrap();
    assert_eq!(reported_ns(&memory), 110);
}

#[test]
fn a_total_that_starts_again_takes_nothing_back() {
    let memory = FakeMemory::new(0x2000);
    let mut steal = registered(&memory);
    for (stolen_ns, reported) in [(100, 100), (3, 100), (10, 107)] {
        steal.publish(&memory, stolen_ns, false).unwrap();
        assert_eq!(reported_ns(&memory), reported);
    }
}

#[test]
fn an_area_outside_of_memory_is_an_error_and_no_more() {
    let memory = FakeMemory::new(0x2000);
    for area in [0x2000, 0xffff_ffff_ffff_ffc0] {
        let mut steal = StealTime::default();
        steal.write_msr(&memory, area | 1).unwrap();
        assert!(steal.publish(&memory, 1, false).is_err());
        assert!(steal.mark_preempted(&memory).is_err());
    }
}

#[test]
fn the_state_survives_and_an_impossible_one_is_refused() {
    let memory = FakeMemory::new(0x2000);
    let mut steal = registered(&memory);
    steal.publish(&memory, 5, false).unwrap();
    let state = steal.state();
    assert_eq!(state, StealTimeState { msr: AREA | 1, version: 2, reported_ns: 5, stolen_ns: 5 });
    assert_eq!(StealTime::from_state(&state), Ok(steal));
    assert!(StealTime::from_state(&StealTimeState { version: 3, ..state }).is_err());
    assert!(StealTime::from_state(&StealTimeState { msr: AREA | 3, ..state }).is_err());
}

proptest! {
    #[test]
    fn any_value_of_the_register_is_safe(value: u64, stolen_ns: u64) {
        let memory = FakeMemory::new(256);
        let mut steal = StealTime::default();
        prop_assert_eq!(steal.write_msr(&memory, value).is_ok(), value & 0x3e == 0);
        let _ = steal.publish(&memory, stolen_ns, false);
        let _ = steal.mark_preempted(&memory);
        prop_assert_eq!(StealTime::from_state(&steal.state()).is_ok(), true);
    }

    /// For every write of the register, the value in one area never shrinks.
    #[test]
    fn what_the_guest_reads_never_shrinks(steps in prop::collection::vec((any::<bool>(), 0..1_000_000_u64), 1..50)) {
        let memory = FakeMemory::new(0x2000);
        let (mut steal, mut total, mut last) = (StealTime::default(), 0, 0);
        for (is_on, more) in steps {
            steal.write_msr(&memory, AREA | u64::from(is_on)).unwrap();
            total += more;
            steal.publish(&memory, total, false).unwrap();
            prop_assert_eq!(reported_ns(&memory), last + if is_on { more } else { 0 });
            last = reported_ns(&memory);
        }
    }
}

/// Memory whose flags differ at each access.
struct Restless;

impl GuestMemory for Restless {
    fn read(&self, _: Gpa, into: &mut [u8]) -> Result<(), OutOfRange> {
        into.fill(1);
        Ok(())
    }
    fn write(&self, _: Gpa, _: &[u8]) -> Result<(), OutOfRange> {
        Ok(())
    }
    fn compare_exchange(&self, _: Gpa, _: AccessSize, _: u64, _: u64) -> Result<bool, OutOfRange> {
        Ok(false)
    }
    fn size_bytes(&self) -> u64 {
        u64::MAX
    }
}

#[test]
fn flags_that_never_hold_still_are_a_flush() {
    let mut steal = StealTime::default();
    steal.write_msr(&Restless, AREA | 1).unwrap();
    assert_eq!(steal.publish(&Restless, 1, true), Ok(true));
    assert_eq!(steal.publish(&Restless, 2, false), Ok(false));
}

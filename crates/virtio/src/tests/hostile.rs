// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drivers that do what no driver may do: each is a named fault, after a bounded number of reads.

use proptest::prelude::*;

use super::*;
use crate::model::{AVAILABLE, DESCRIPTORS, TABLES, put};
use crate::{CHAIN_SEGMENTS, Chain, Fault, Memory as _, Outside, Progress};

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

/// The outcome of a chain of these descriptors, from number 0 on.
fn fault_of(options: Options, descriptors: &[(Segment, u16, u16)]) -> Result<bool, Fault> {
    let (ram, mut driver, mut queue) = lab(8, options);
    for (number, (segment, flags, next)) in (0..).zip(descriptors) {
        put(&ram, DESCRIPTORS, number, segment, *flags, *next);
    }
    driver.offer(&ram, 0);
    let taken = queue.take(&ram, &mut Chain::new());
    assert!(ram.reads.borrow().values().sum::<u32>() < 16 * 2 * CHAIN_SEGMENTS as u32, "reads are bounded");
    assert!(taken.is_err() <= (queue.progress() == Progress::default()), "a chain at fault is not taken");
    taken
}

#[test]
fn s2_7_5_a_loop_ends() {
    let one = segment(0x8000, 1);
    assert_eq!(fault_of(PLAIN, &[(one, NEXT, 0)]), Err(Fault::ChainTooLong));
    assert_eq!(fault_of(PLAIN, &[(one, NEXT, 1), (one, NEXT, 0)]), Err(Fault::ChainTooLong));
    assert_eq!(fault_of(PLAIN, &[(segment(0, 0), NEXT, 0)]), Err(Fault::ChainTooLong), "empty buffers");
}

#[test]
fn s2_7_5_2_lengths_that_overflow_are_refused() {
    let wraps = segment(u64::MAX - 3, 5);
    assert_eq!(fault_of(PLAIN, &[(wraps, 0, 0)]), Err(Fault::TooManyBytes));
    let huge = segment(0x8000, u32::MAX);
    assert_eq!(fault_of(PLAIN, &[(huge, 0, 0)]), Ok(true));
    assert_eq!(fault_of(PLAIN, &[(huge, NEXT, 1), (segment(0, 1), WRITE, 0)]), Err(Fault::TooManyBytes));
    assert_eq!(fault_of(PLAIN, &[(huge, NEXT, 1), (huge, 0, 0)]), Err(Fault::TooManyBytes));
}

#[test]
fn s2_7_4_2_what_is_read_comes_first() {
    let one = segment(0x8000, 1);
    assert_eq!(fault_of(PLAIN, &[(one, WRITE | NEXT, 1), (one, 0, 0)]), Err(Fault::ReadableBehindWritable));
}

#[test]
fn s2_7_5_numbers_past_the_table_are_refused() {
    let one = segment(0x8000, 1);
    assert_eq!(fault_of(PLAIN, &[(one, NEXT, 8)]), Err(Fault::NoSuchDescriptor { number: 8 }));
    let (ram, mut driver, mut queue) = lab(8, PLAIN);
    driver.offer(&ram, u16::MAX);
    assert_eq!(queue.take(&ram, &mut Chain::new()), Err(Fault::NoSuchDescriptor { number: u16::MAX }));
}

#[test]
fn s2_7_5_3_1_indirect_tables_that_must_not_be_are_refused() {
    let table = segment(TABLES, 32);
    assert_eq!(fault_of(PLAIN, &[(table, INDIRECT, 0)]), Err(Fault::WrongIndirect), "not negotiated");
    assert_eq!(fault_of(ALL, &[(table, INDIRECT | NEXT, 1)]), Err(Fault::WrongIndirect));
    for bytes in [0, 8, 17] {
        let odd = segment(TABLES, bytes);
        assert_eq!(fault_of(ALL, &[(odd, INDIRECT, 0)]), Err(Fault::IndirectLength { bytes }));
    }
    // The table is where the queue's own one is: an indirect descriptor in an indirect table.
    assert_eq!(fault_of(ALL, &[(segment(DESCRIPTORS, 16), INDIRECT, 0)]), Err(Fault::WrongIndirect));
    let last = segment(u64::MAX - 15, 32);
    let outside = Fault::Outside(Outside { address: u64::MAX - 15, bytes: 16 });
    assert_eq!(fault_of(ALL, &[(last, INDIRECT, 0)]), Err(outside));
}

#[test]
fn s2_7_6_an_available_index_that_jumps_is_refused() {
    let (ram, _, mut queue) = lab(8, PLAIN);
    for index in [9, 0x8000, u16::MAX] {
        ram.set(AVAILABLE + 2, &index.to_le_bytes());
        assert_eq!(queue.take(&ram, &mut Chain::new()), Err(Fault::IndexJumped { index }));
    }
    ram.set(AVAILABLE + 2, &8_u16.to_le_bytes());
    (0..8).for_each(|_| assert_eq!(queue.take(&ram, &mut Chain::new()), Ok(true)));
    ram.set(AVAILABLE + 2, &7_u16.to_le_bytes());
    assert_eq!(queue.take(&ram, &mut Chain::new()), Err(Fault::IndexJumped { index: 7 }), "it went back");
    ram.set(AVAILABLE + 2, &9_u16.to_le_bytes());
    assert_eq!(queue.take(&ram, &mut Chain::new()), Err(Fault::IndexJumped { index: 9 }), "none was completed");
    assert_eq!(queue.enable_notifications(&ram), Err(Fault::IndexJumped { index: 9 }));
}

#[test]
fn s2_7_8_no_more_is_completed_than_was_taken() {
    let (ram, _, mut queue) = lab(8, PLAIN);
    assert_eq!(queue.complete(&ram, 0, 0), Err(Fault::IndexJumped { index: 0 }));
}

#[test]
fn rings_and_buffers_outside_memory_or_over_registers_are_refused() {
    let (mut ram, mut driver, mut queue) = lab(8, PLAIN);
    driver.add(&ram, &[segment(0x8000, 16)], &[segment(0x9000, 16)], false).expect("there is room");
    let mut chain = Chain::new();
    assert_eq!(queue.take(&ram, &mut chain), Ok(true));
    ram.hole = 0x8008..0x8010;
    assert!(matches!(chain.read(&ram, 0, &mut [0; 16]), Err(Fault::Outside(_))));
    ram.hole = 0x9008..0x9010;
    assert!(matches!(chain.write(&ram, 8, &[0; 8]), Err(Fault::Outside(_))));
    for hole in [0x1000, 0x3000, 0x4000] {
        (ram.hole, queue) = (hole..hole + 8, driver.queue());
        let taken = queue.take(&ram, &mut chain);
        let result = taken.and_then(|_| queue.complete(&ram, 0, 0)).and_then(|()| queue.publish(&ram));
        assert!(matches!(result, Err(Fault::Outside(_))), "{hole:#x}: {result:?}");
    }
}

proptest! {
    /// Whatever is in memory: no panic, no loop, and what is read of rings and tables is read once.
    #[test]
    fn any_memory_is_a_chain_or_a_fault(
        words in prop::collection::vec((0_u64..0x80, any::<u16>()), 0..64),
        index in 0_u16..10,
        has_indirect: bool,
        has_event_index: bool,
    ) {
        let (ram, _, mut queue) = lab(8, Options { has_indirect, has_event_index });
        for (at, word) in words {
            // Small numbers make chains that go on.
            let word = if word & 0x100 == 0 { word & 7 } else { word };
            ram.set(DESCRIPTORS + 2 * (at & 0x3f), &word.to_le_bytes());
            if at >= 0x40 {
                ram.set(AVAILABLE + 4 + 2 * (at & 7), &word.to_le_bytes());
            }
        }
        ram.set(AVAILABLE + 2, &index.to_le_bytes());
        let mut chain = Chain::new();
        for _ in 0..index {
            ram.reads.borrow_mut().clear();
            let Ok(true) = queue.take(&ram, &mut chain) else { break };
            prop_assert!(ram.reads.borrow().values().all(|count| *count == 1 || chain.readable().len() > 8
                || chain.writable().len() > 8 || has_indirect));
            let sum = |segments: &[Segment]| segments.iter().map(|segment| u64::from(segment.bytes)).sum::<u64>();
            prop_assert_eq!(sum(chain.readable()), u64::from(chain.readable_bytes()));
            prop_assert_eq!(sum(chain.writable()), u64::from(chain.writable_bytes()));
            let _ = chain.read(&ram, 0, &mut [0; 64]);
            queue.complete(&ram, chain.head(), 0).expect("the ring is memory");
        }
        let _ = queue.publish(&ram);
        prop_assert!(ram.read(u64::MAX, &mut [0]).is_err());
    }
}

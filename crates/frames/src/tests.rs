// SPDX-License-Identifier: MIT OR Apache-2.0
use std::string::ToString;
use std::vec::Vec;

use units::{GIB, KIB, MIB};

use super::*;

mod uses;

fn range(start: u64, end: u64) -> PhysRange {
    PhysRange::new(PhysAddr(start), PhysAddr(end)).unwrap()
}

/// Room for a ledger, for as long as the tests run.
fn ledger() -> Frames<'static> {
    Frames::in_slots(std::vec![PhysRange::default(); LEDGER_SLOTS].leak())
}

/// Returns a PC of 5 GiB: 640 KiB low, 3 GiB below the hole, the rest above 4 GiB.
fn pc() -> Frames<'static> {
    let mut frames = ledger();
    for (start, end) in [(0, 0x9_fc00), (MIB, 3 * GIB), (4 * GIB, 6 * GIB)] {
        frames.add_free(range(start, end)).unwrap();
    }
    frames
}

#[test]
fn only_whole_frames_are_added() {
    let frames = pc();
    assert_eq!(frames.extents().next(), Some(range(0, 0x9_f000)));
    assert_eq!(frames.free_bytes(), 5 * GIB - MIB + 0x9_f000);
    assert_eq!(frames.largest_extent(), Some(range(MIB, 3 * GIB)));
}

#[test]
fn memory_is_added_once() {
    assert_eq!(pc().add_free(range(2 * GIB, 5 * GIB)), Err(AddError::Overlap(range(2 * GIB, 3 * GIB))));
}

#[test]
fn every_frame_that_a_reservation_touches_is_taken() {
    let mut frames = pc();
    frames.reserve(range(2 * MIB + 1, 2 * MIB + 4097)).unwrap();
    frames.reserve(range(0x9_e000, MIB + 5)).unwrap();
    let extents: Vec<_> = frames.extents().take(3).collect();
    assert_eq!(
        extents,
        [range(0, 0x9_e000), range(MIB + 4096, 2 * MIB), range(2 * MIB + 8192, 3 * GIB)],
        "parts outside memory are passed over"
    );
}

#[test]
fn reserved_memory_can_be_freed_once_it_is_no_longer_needed() {
    let mut frames = pc();
    let before = frames.free_bytes();
    frames.reserve(range(2 * MIB, 3 * MIB)).unwrap();
    frames.free(FrameRange::adopt(range(2 * MIB, 3 * MIB)).unwrap()).unwrap();
    assert_eq!(frames.free_bytes(), before);
    assert_eq!(frames.extents().count(), 3);
}

#[test]
fn small_requests_use_crumbs_and_leave_huge_frames_whole() {
    let mut frames = pc();
    let whole = |frames: &Frames| {
        let huge = frames.extents().map(|extent| extent.aligned_inwards(GIB));
        huge.map(PhysRange::bytes).sum::<u64>() / GIB
    };
    assert_eq!(whole(&frames), 4, "two below 3 GiB, two above 4 GiB");
    let small: Vec<_> = (0..300).map(|_| frames.allocate(4096, PageSize::Kib4).unwrap()).collect();
    assert_eq!(small[0].range(), range(MIB, MIB + 4096));
    let medium = frames.allocate(100 * MIB, PageSize::Mib2).unwrap();
    assert!(medium.range().end() <= PhysAddr(GIB));
    assert_eq!(whole(&frames), 4);
    let huge = frames.allocate(2 * GIB, PageSize::Gib1).unwrap();
    assert_eq!(huge.start(), PhysAddr(4 * GIB), "of two places that cost two huge frames, the smaller extent");
    assert_eq!(whole(&frames), 2);
}

#[test]
fn the_better_end_of_an_extent_is_used() {
    let mut frames = ledger();
    frames.add_free(range(4 * GIB, 5 * GIB + 16 * KIB)).unwrap();
    assert_eq!(frames.allocate(4096, PageSize::Kib4).unwrap().start(), PhysAddr(5 * GIB + 12 * KIB));
}

#[test]
fn low_memory_is_used_last_and_on_request() {
    let mut frames = ledger();
    frames.add_free(range(0x1000, 0x3000)).unwrap();
    frames.add_free(range(MIB, MIB + 4096)).unwrap();
    let trampoline = frames.allocate_below(4096, PageSize::Kib4, PhysAddr(MIB)).unwrap();
    assert_eq!(trampoline.start(), PhysAddr(0x1000));
    assert_eq!(frames.allocate(1, PageSize::Kib4).unwrap().start(), PhysAddr(MIB));
    assert_eq!(frames.allocate(0, PageSize::Kib4).unwrap().range(), range(0x2000, 0x3000));
    assert!(frames.allocate(1, PageSize::Kib4).is_err());
}

#[test]
fn out_of_memory_states_what_is_left() {
    let mut frames = pc();
    let refused = frames.allocate(4 * GIB, PageSize::Mib2).unwrap_err();
    let text = "no 4 GiB of memory in one piece aligned to 2 MiB: 4.9 GiB free, largest piece 2.9 GiB";
    assert_eq!(refused.to_string(), text);
    let refused = frames.allocate_below(MIB, PageSize::Kib4, PhysAddr(MIB)).unwrap_err();
    assert!(refused.to_string().starts_with("no 1 MiB of memory in one piece aligned to 4 KiB below 0x100000: "));
    assert!(frames.allocate(u64::MAX, PageSize::Kib4).is_err());
}

#[test]
fn freeing_twice_is_refused_and_names_the_part() {
    let mut frames = pc();
    let mine = frames.allocate(8192, PageSize::Kib4).unwrap();
    let (first, second) = mine.split(4096).unwrap();
    let forged = FrameRange::adopt(range(first.start().0, second.range().end().0)).unwrap();
    frames.free(second).unwrap();
    let error = frames.free(forged).unwrap_err();
    assert_eq!(error.reason, FreeReason::FreeAlready(range(MIB + 4096, MIB + 8192)));
    assert!(error.to_string().ends_with("0x101000-0x101fff (4 KiB) is free already"));
    frames.free(first).unwrap();
}

#[test]
fn what_was_never_memory_cannot_be_freed() {
    let mut frames = pc();
    let error = frames.free(FrameRange::adopt(range(3 * GIB, 3 * GIB + 4096)).unwrap()).unwrap_err();
    assert_eq!(error.reason, FreeReason::NeverAdded);
}

#[test]
fn a_claim_takes_exactly_what_it_names_or_nothing() {
    let mut frames = pc();
    let claimed = frames.claim(range(2 * MIB, 4 * MIB)).unwrap();
    assert_eq!(frames.claim(range(3 * MIB, 5 * MIB)), Err(ClaimError::NotFree(range(3 * MIB, 5 * MIB))));
    assert_eq!(frames.claim(range(1, 4096)), Err(ClaimError::Misaligned(range(1, 4096))));
    frames.free(claimed).unwrap();
    assert_eq!(frames.extents().count(), 3);
}

#[test]
fn a_range_splits_only_at_frames_and_never_into_nothing() {
    let whole = || FrameRange::adopt(range(MIB, MIB + 8192)).unwrap();
    for bytes in [0, 1, 8192, 12288, u64::MAX] {
        assert_eq!(whole().split(bytes), Err(whole()));
    }
    assert_eq!(FrameRange::adopt(range(MIB, MIB)), None);
}

const FULL: TooManyExtents = TooManyExtents { most: MAXIMUM_EXTENTS };

/// Frees every second frame of a run until the extents are used up.
#[test]
fn when_extents_run_out_nothing_is_lost() {
    let mut frames = ledger();
    frames.add_free(range(MIB, 9 * MIB)).unwrap();
    let frame = |index: u64| range(MIB + index * 4096, MIB + (index + 1) * 4096);
    let owned: Vec<_> = (0..1100).map(|index| frames.claim(frame(index)).unwrap()).collect();
    let mut kept = Vec::new();
    let mut refused = Vec::new();
    for (index, frame) in owned.into_iter().enumerate() {
        match index % 2 {
            0 => kept.push(frame),
            _ => refused.extend(frames.free(frame).err()),
        }
    }
    assert_eq!(frames.extents().count(), MAXIMUM_EXTENTS);
    assert_eq!(frames.reserve(range(6 * MIB, 7 * MIB)), Err(FULL));
    assert_eq!(frames.claim(range(6 * MIB, 7 * MIB)), Err(ClaimError::TooManyExtents(FULL)));
    assert_eq!(frames.add_free(range(10 * MIB, 11 * MIB)), Err(AddError::TooManyExtents(FULL)));
    assert_eq!(frames.total_bytes(), 8 * MIB);
    assert!(!refused.is_empty());
    assert!(refused.iter().all(|error| error.reason == FreeReason::TooManyExtents(FULL)));
    kept.into_iter().chain(refused.into_iter().map(|error| error.range)).for_each(|frame| frames.free(frame).unwrap());
    assert_eq!(frames.extents().collect::<Vec<_>>(), [range(MIB, 9 * MIB)]);
}

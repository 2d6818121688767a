// SPDX-License-Identifier: MIT OR Apache-2.0
//! Huge frames, nodes, clean memory, damaged memory.

use super::*;
use crate::nodes::NodeRange;

/// Memory of a machine with two nodes: 9 GiB on the first, 8 on the second.
fn two_nodes() -> Frames<'static> {
    let mut frames = ledger();
    let memory = [range(MIB, 3 * GIB), range(4 * GIB, 18 * GIB)];
    memory.iter().for_each(|part| frames.add_free(*part).unwrap());
    let claims = [(0, 0, 10 * GIB), (1, 10 * GIB, 18 * GIB)];
    let claims = claims.map(|(node, start, end)| NodeRange { range: range(start, end), node });
    frames.set_nodes(NodeMap::build(&claims, &memory).0);
    frames
}

#[test]
fn huge_frames_are_set_aside_evenly_and_above_4_gib_first() {
    let mut frames = two_nodes();
    frames.set_aside(PageSize::Gib1, 6, 0).unwrap();
    let set_aside: Vec<_> = frames.set_aside_ranges().collect();
    assert!(set_aside.iter().all(|part| part.is_aligned(GIB) && part.start() >= PhysAddr(4 * GIB)), "{set_aside:?}");
    let on_first =
        set_aside.iter().filter(|part| part.end() <= PhysAddr(10 * GIB)).map(|part| part.bytes()).sum::<u64>();
    assert_eq!((on_first, set_aside.iter().map(|part| part.bytes()).sum::<u64>()), (3 * GIB, 6 * GIB));
}

#[test]
fn huge_frames_that_do_not_exist_are_counted_and_the_host_keeps_its_own() {
    let mut frames = two_nodes();
    let shortage = frames.set_aside(PageSize::Gib1, 500, GIB).unwrap_err();
    assert_eq!(
        shortage.to_string(),
        "15 of 500 huge frames of 1 GiB are set aside: no more memory is free in such pieces"
    );
    assert!(frames.allocate(512 * MIB, PageSize::Kib4).is_ok());
    assert!(frames.allocate(2 * GIB, PageSize::Kib4).is_err(), "what is set aside is guests'");
    assert!(frames.allocate_for_guest(7 * GIB, PageSize::Gib1, Some(1)).is_ok());
}

#[test]
fn a_reserved_frame_inside_a_huge_one_costs_that_huge_frame_only() {
    let mut frames = ledger();
    frames.add_free(range(4 * GIB, 8 * GIB)).unwrap();
    frames.reserve(range(5 * GIB + 8 * KIB, 5 * GIB + 12 * KIB)).unwrap();
    let shortage = frames.set_aside(PageSize::Gib1, 4, 0).unwrap_err();
    assert_eq!(shortage.reserved, 3);
    assert_eq!(frames.set_aside_ranges().collect::<Vec<_>>(), [range(4 * GIB, 5 * GIB), range(6 * GIB, 8 * GIB)]);
    assert_eq!(frames.set_aside(PageSize::Mib2, 511, 0), Ok(()));
    assert_eq!(frames.set_aside(PageSize::Mib2, 1, 0).unwrap_err().reserved, 0);
}

#[test]
fn guests_have_their_memory_on_their_node_and_else_on_one_other() {
    let mut frames = two_nodes();
    let on = |frames: &mut Frames<'static>, gib: u64, node| {
        let memory = frames.allocate_for_guest(gib * GIB, PageSize::Mib2, Some(node)).unwrap().range.leak();
        let parts: Vec<_> = frames.nodes.parts(memory).map(|(_, node)| node.unwrap()).collect();
        parts
    };
    assert_eq!(on(&mut frames, 5, 1), [1]);
    assert_eq!(on(&mut frames, 2, 1), [1]);
    assert_eq!(on(&mut frames, 2, 1), [0], "what does not fit beside it");
    assert_eq!(on(&mut frames, 2, 0), [0]);
}

#[test]
fn set_aside_memory_goes_back_to_where_it_was_set_aside() {
    let mut frames = two_nodes();
    frames.set_aside(PageSize::Mib2, 64, 0).unwrap();
    let before: Vec<_> = frames.extents().collect();
    let guest = frames.allocate_for_guest(64 * MIB, PageSize::Mib2, None).unwrap();
    assert!(frames.set_aside_ranges().any(|part| part.contains_range(guest.range.range())));
    frames.free_from_guest(guest.range).unwrap();
    assert_eq!(frames.extents().collect::<Vec<_>>(), before);
}

#[test]
fn what_a_guest_has_kept_is_its_own_and_comes_back_as_any_guests() {
    let mut frames = pc();
    let free = frames.free_bytes();
    let kept = range(16 * MIB, 20 * MIB);
    frames.keep_for_guest(kept).expect("there is room");
    assert_eq!(frames.state_of(kept.start()), FrameState::Guest);
    assert_eq!(frames.free_bytes(), free - 4 * MIB);
    assert!(frames.claim(kept).is_err(), "it has an owner");
    frames.free_from_guest(FrameRange::adopt(kept).expect("whole frames")).expect("it is a guest's");
    assert_eq!((frames.free_bytes(), frames.tainted_bytes()), (free, 4 * MIB));
}

#[test]
fn huge_frames_that_guests_have_kept_count_as_set_aside_and_no_more_than_wanted() {
    let mut frames = pc();
    // Two whole frames of 2 MiB and two halves; another guest's right behind.
    frames.keep_for_guest(range(17 * MIB, 23 * MIB)).expect("there is room");
    frames.keep_for_guest(range(23 * MIB, 24 * MIB)).expect("there is room");
    assert_eq!(frames.set_aside_of_guests(PageSize::Mib2, 1), 1);
    assert!(frames.set_aside_ranges().eq([range(18 * MIB, 20 * MIB)]));
    assert_eq!(frames.set_aside_of_guests(PageSize::Mib2, 9), 2);
    assert!(frames.set_aside_ranges().eq([range(18 * MIB, 24 * MIB)]));
    let free = frames.free_bytes();
    let all = FrameRange::adopt(range(17 * MIB, 24 * MIB)).expect("whole frames");
    frames.free_from_guest(all).expect("it is a guest's");
    assert_eq!(frames.free_bytes(), free + 7 * MIB);
    assert!(frames.extents().any(|extent| extent == range(18 * MIB, 24 * MIB)), "they are set aside still");
}

#[test]
fn guests_and_files_leave_memory_to_the_host() {
    let mut frames = ledger();
    frames.add_free(range(4 * MIB, 64 * MIB)).unwrap();
    frames.leave_to_host(8 * MIB);
    assert_eq!(frames.free_for_guests_bytes(), 52 * MIB);
    let refused = frames.allocate_for_guest(54 * MIB, PageSize::Mib2, None).unwrap_err();
    assert_eq!((refused.free_bytes, refused.largest_bytes), (52 * MIB, 52 * MIB), "{refused}");
    let guest = frames.allocate_for_guest(52 * MIB, PageSize::Mib2, None).unwrap().range.leak();
    assert_eq!((frames.free_for_guests_bytes(), frames.free_bytes()), (0, 8 * MIB));
    assert!(frames.allocate_for_guest(4096, PageSize::Kib4, None).is_err());
    assert!(frames.allocate_for_file(4 * MIB + 4096, PageSize::Kib4).is_err());
    let file = frames.allocate_for_file(4 * MIB, PageSize::Kib4).unwrap();
    assert!(frames.allocate_for_file(4096, PageSize::Kib4).is_err());
    let own = frames.allocate(4 * MIB, PageSize::Kib4).expect("the host has the rest");
    for range in [file, own] {
        frames.free(range).unwrap();
    }
    frames.free_from_guest(FrameRange::adopt(guest).expect("whole frames")).unwrap();
    assert_eq!(frames.free_for_guests_bytes(), 52 * MIB);
}

#[test]
fn guests_leave_memory_below_4_gib_to_the_host_and_take_other_memory_first() {
    let mut frames = ledger();
    frames.add_free(range(4 * MIB, GIB)).unwrap();
    frames.add_free(range(4 * GIB, 5 * GIB)).unwrap();
    frames.leave_to_host(64 * MIB);
    let first = frames.allocate_for_guest(512 * MIB, PageSize::Mib2, None).unwrap().range.leak();
    let second = frames.allocate_for_guest(512 * MIB, PageSize::Mib2, None).unwrap().range.leak();
    assert!(first.start().0 >= 4 * GIB && second.start().0 >= 4 * GIB);
    assert!(frames.allocate_for_guest(GIB - 66 * MIB, PageSize::Mib2, None).is_err());
    let third = frames.allocate_for_guest(GIB - 68 * MIB, PageSize::Mib2, None).unwrap().range.leak();
    assert!(third.end().0 <= GIB);
    assert!(frames.allocate_below(62 * MIB, PageSize::Mib2, PhysAddr(4 * GIB)).is_ok(), "the next image has room");
}

#[test]
fn what_is_set_aside_for_guests_is_theirs_to_the_last_frame() {
    let mut frames = ledger();
    frames.add_free(range(4 * MIB, 64 * MIB)).unwrap();
    frames.set_aside(PageSize::Mib2, 8, 8 * MIB).unwrap();
    let rest = frames.free_bytes() - 16 * MIB;
    frames.leave_to_host(rest);
    assert_eq!(frames.free_for_guests_bytes(), 16 * MIB);
    assert!(frames.allocate_for_guest(16 * MIB, PageSize::Mib2, None).is_ok());
    assert!(frames.allocate_for_guest(2 * MIB, PageSize::Mib2, None).is_err());
}

#[test]
fn a_guest_gets_clean_memory_where_there_is_some_and_clears_the_rest() {
    let mut frames = ledger();
    frames.add_free(range(4 * MIB, 64 * MIB)).unwrap();
    let first = frames.allocate_for_guest(16 * MIB, PageSize::Mib2, None).unwrap();
    let place = first.range.range();
    assert_eq!(first.dirty.as_slice(), [place], "nothing is known of memory as the machine starts");
    frames.free_from_guest(first.range).unwrap();
    assert_eq!(
        (frames.tainted_bytes(), frames.begin_scrub(1).map(|piece| piece.range().bytes())),
        (16 * MIB, Some(4096))
    );
    while let Some(piece) = frames.begin_scrub(5 * MIB) {
        frames.end_scrub(piece).unwrap();
    }
    // The first piece was not put back: its frame has no owner.
    assert_eq!(frames.clean_bytes(), 16 * MIB - 4096);
    let second = frames.allocate_for_guest(8 * MIB, PageSize::Mib2, None).unwrap();
    assert!(second.dirty.is_empty() && place.contains_range(second.range.range()));
    let third = frames.allocate_for_guest(16 * MIB, PageSize::Mib2, None).unwrap();
    let dirty: u64 = third.dirty.iter().map(|part| part.bytes()).sum();
    assert!(dirty > 0 && dirty <= 16 * MIB);
}

#[test]
fn host_memory_is_not_counted_as_clean_when_it_comes_back() {
    let mut frames = ledger();
    frames.add_free(range(4 * MIB, 8 * MIB)).unwrap();
    let guest = frames.allocate_for_guest(4 * MIB, PageSize::Mib2, None).unwrap();
    frames.free_from_guest(guest.range).unwrap();
    let piece = frames.begin_scrub(4 * MIB).unwrap();
    frames.end_scrub(piece).unwrap();
    let host = frames.allocate(4 * MIB, PageSize::Mib2).unwrap();
    frames.free(host).unwrap();
    assert_eq!((frames.clean_bytes(), frames.tainted_bytes()), (0, 0));
    let guest = frames.allocate_for_guest(4 * MIB, PageSize::Mib2, None).unwrap();
    assert_eq!(guest.dirty.as_slice(), [range(4 * MIB, 8 * MIB)]);
}

#[test]
fn a_damaged_frame_is_retired_when_its_owner_gives_it_back() {
    let mut frames = ledger();
    frames.add_free(range(4 * MIB, 8 * MIB)).unwrap();
    let owned = frames.claim(range(4 * MIB, 6 * MIB)).unwrap();
    assert_eq!(frames.retire(range(5 * MIB + 1, 5 * MIB + 2)), Ok(4096));
    assert_eq!(frames.retire(range(7 * MIB, 9 * MIB)), Ok(MIB), "what is no memory is passed over");
    assert_eq!(frames.free_bytes(), MIB);
    frames.free(owned).unwrap();
    assert_eq!(frames.extents().collect::<Vec<_>>(), [range(4 * MIB, 5 * MIB), range(5 * MIB + 4096, 7 * MIB)]);
    assert_eq!(
        frames.claim(range(5 * MIB, 5 * MIB + 4096)).unwrap_err(),
        ClaimError::NotFree(range(5 * MIB, 5 * MIB + 4096))
    );
    assert_eq!(
        [5 * MIB, 5 * MIB + 4096].map(|at| frames.state_of(PhysAddr(at))),
        [FrameState::Retired, FrameState::Free]
    );
}

#[test]
fn room_for_the_ledger_is_usable_and_not_taken() {
    let usable = || [range(0, 640 * KIB), range(MIB, 2 * MIB), range(3 * MIB, 64 * MIB)];
    let taken = [range(MIB + 100, MIB + 200), range(3 * MIB, 4 * MIB + 1)];
    let overlap = |room: PhysRange| taken.iter().find_map(|taken| taken.intersection(room));
    let find = |bytes| find_room(&usable(), range(MIB, 4 * GIB), bytes, &overlap);
    assert_eq!(find(32 * KIB), Some(range(MIB + 4096, MIB + 4096 + 32 * KIB)));
    assert_eq!(find(MIB), Some(range(4 * MIB + 4096, 5 * MIB + 4096)));
    assert_eq!((find(64 * MIB), find(u64::MAX)), (None, None));
}

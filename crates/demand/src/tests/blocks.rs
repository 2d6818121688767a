// SPDX-License-Identifier: MIT OR Apache-2.0
//! How blocks come and go.

use super::*;

#[test]
fn a_block_comes_when_it_is_touched_and_is_shown_where_it_is() {
    let host = Host::new(8);
    let blocks = guest(&host, 6, 0);
    let mut shown = Vec::new();
    for number in [5, 0, 5] {
        let gpa = LAYOUT.gpa(number);
        let outcome = blocks.touch(gpa + 0x1234, |gpa, physical| {
            shown.push((gpa, physical));
            true
        });
        assert_eq!(outcome, Shown::Now);
    }
    let (first, second) = (BLOCK_BYTES, 2 * BLOCK_BYTES);
    assert_eq!(shown, [(101 * BLOCK_BYTES, first), (0, second), (101 * BLOCK_BYTES, first)]);
    assert_eq!((there(&blocks), blocks.resident_bytes()), (std::vec![0, 5], 2 * BLOCK_BYTES));
}

#[test]
fn what_was_assured_is_there_whatever_other_guests_take() {
    let host = Host::new(4);
    let (assured, other) = (guest(&host, 6, 3), guest(&host, 6, 0));
    assert_eq!([0, 1].map(|number| touch(&other, number)), [Shown::Now, Shown::NoMemory]);
    assert_eq!(
        [0, 1, 2, 3].map(|number| touch(&assured, number)),
        [Shown::Now, Shown::Now, Shown::Now, Shown::NoMemory]
    );
    assert_eq!(host.frames(|frames| frames.assured_bytes), 0);
}

#[test]
fn a_guest_that_frees_what_it_was_assured_can_have_it_again() {
    let host = Host::new(2);
    let (assured, other) = (guest(&host, 6, 2), guest(&host, 6, 0));
    assert_eq!([0, 1].map(|number| touch(&assured, number)), [Shown::Now; 2]);
    assert!(assured.hide(0, 2 * BLOCK_BYTES, |_| 1));
    assert_eq!(assured.release_hidden(1), Hiding::Done);
    assert_eq!(touch(&other, 0), Shown::NoMemory, "both are assured");
    assert_eq!([2, 3].map(|number| touch(&assured, number)), [Shown::Now; 2]);
}

#[test]
fn a_freed_block_is_the_hosts_only_once_every_tlb_is_flushed() {
    let host = Host::new(2);
    let blocks = guest(&host, 6, 0);
    assert_eq!([0, 1].map(|number| touch(&blocks, number)), [Shown::Now; 2]);
    let mut hidden = Vec::new();
    assert!(blocks.hide(1, 2 * BLOCK_BYTES - 1, |gpa| {
        hidden.push(gpa);
        7
    }));
    assert_eq!(hidden, [BLOCK_BYTES], "only whole blocks");
    assert!(blocks.has_hidden());
    assert_eq!((blocks.release_hidden(6), host.frames(|frames| frames.free.len())), (Hiding::Waits, 0));
    assert_eq!(touch(&blocks, 1), Shown::Later);
    assert_eq!((blocks.release_hidden(7), host.frames(|frames| frames.free.len())), (Hiding::Done, 1));
    assert!(!blocks.has_hidden());
    assert_eq!(touch(&blocks, 1), Shown::Now);
}

#[test]
fn blocks_are_kept_where_free_memory_is_in_many_parts() {
    let host = Host::new(2);
    let blocks = guest(&host, 6, 0);
    assert_eq!(touch(&blocks, 0), Shown::Now);
    host.frames(|frames| frames.is_in_many_parts = true);
    assert!(blocks.hide(0, BLOCK_BYTES, |_| panic!("it is hidden")));
    assert!(!blocks.has_hidden());
}

#[test]
fn ranges_are_memory_as_the_guest_sees_it() {
    let blocks = guest(&Host::new(1), 6, 0);
    let high = LAYOUT.high_start;
    let is_memory = |gpa, bytes| blocks.check(gpa, bytes).is_ok();
    let block = BLOCK_BYTES as usize;
    assert!(is_memory(0, 4 * block) && is_memory(high, 2 * block) && is_memory(high + 2 * BLOCK_BYTES - 1, 1));
    assert!(is_memory(4 * BLOCK_BYTES - 1, 0), "nothing of what is there");
    assert!(!is_memory(0, 4 * block + 1) && !is_memory(4 * BLOCK_BYTES, 1) && !is_memory(high - 1, 2));
    assert!(!is_memory(3 * BLOCK_BYTES, block + 1), "its next block is elsewhere");
    assert!(!is_memory(high + 2 * BLOCK_BYTES, 1) && !is_memory(u64::MAX, 1) && !is_memory(high, usize::MAX));
}

#[test]
fn reads_find_zeros_where_nothing_is_and_writes_bring_blocks() {
    let host = Host::new(1);
    let blocks = guest(&host, 6, 0);
    let across = BLOCK_BYTES - 1;
    let (mut read, mut written) = (Vec::new(), Vec::new());
    blocks.reading(across, 3).unwrap().each_part(across, 3, |host, part| read.push((host, part)));
    assert_eq!(read, [(None, 0..1), (None, 1..3)]);
    assert!(blocks.writing(across, 3).is_err(), "there is one frame");
    blocks.writing(across, 1).unwrap().each_part(across, 1, |host, part| written.push((host, part)));
    assert_eq!(written, [(Some(BLOCK_BYTES + across), 0..1)]);
}

#[test]
fn neighbours_are_one_piece() {
    let blocks = guest(&Host::new(4), 6, 0);
    for number in [0, 1, 3, 2] {
        assert_eq!(touch(&blocks, number), Shown::Now);
    }
    let block = BLOCK_BYTES;
    assert_eq!(blocks.pieces(), [(0, block, 2 * block), (2 * block, 4 * block, block), (3 * block, 3 * block, block)]);
}

#[test]
fn what_a_guest_leaves_is_the_hosts_unless_it_is_kept_for_good() {
    for (is_kept, free) in [(false, 8), (true, 6)] {
        let host = Host::new(8);
        let blocks = guest(&host, 6, 3);
        assert_eq!([0, 1].map(|number| touch(&blocks, number)), [Shown::Now; 2]);
        blocks.release_all(is_kept);
        assert_eq!(host.frames(|frames| (frames.free.len(), frames.assured_bytes)), (free, 0));
    }
}

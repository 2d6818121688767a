// SPDX-License-Identifier: MIT OR Apache-2.0
//! Blocks over an update.

use super::*;

/// The next image's view of what was packed.
fn adopt(host: &Host, packed: &Packed, assured: u64) -> Blocks<Host> {
    let handed_over: Vec<u64> = packed.frames.iter().chain(&packed.spares).copied().collect();
    let next = host.inherited_by_next(&handed_over);
    let (frames, spares) = (packed.frames.iter().copied(), packed.spares.iter().copied());
    Blocks::adopt(next, LAYOUT, frames, spares, assured * BLOCK_BYTES)
}

#[test]
fn spares_become_blocks_in_both_images_alike() {
    let host = Host::new(30);
    let old = guest(&host, 20, 4);
    assert_eq!(touch(&old, 3), Shown::Now);
    let packed = old.hold();
    assert_eq!((packed.frames.len(), packed.spares.len()), (20, SPARES));
    assert_eq!(touch(&old, 7), Shown::Now);
    let next = adopt(&host, &packed, 4);
    next.use_spares(old.spares_used());
    assert_eq!(touch(&old, 8), Shown::Now);
    next.use_spares(old.spares_used());
    assert_eq!(next.frames().collect::<Vec<_>>(), old.frames().collect::<Vec<_>>());
    assert_eq!(next.source.frames(|frames| frames.assured_bytes), BLOCK_BYTES);
    next.settle();
    assert_eq!(next.source.frames(|frames| frames.owned.len()), 3);
}

#[test]
fn a_block_that_comes_between_two_packings_is_no_spare_any_more() {
    let host = Host::new(30);
    let old = guest(&host, 20, 0);
    let first = old.hold();
    assert_eq!(touch(&old, 7), Shown::Now);
    let second = old.hold();
    assert!(!second.spares.contains(&second.frames[7]) && first.spares.contains(&second.frames[7]));
    old.settle();
    assert!(!old.hide(7 * BLOCK_BYTES, BLOCK_BYTES, |_| panic!("it is hidden")), "the second is under way");
    let next = adopt(&host, &second, 0);
    next.use_spares(old.spares_used());
    next.settle();
    assert_eq!((there(&next), next.source.frames(|frames| frames.owned.len())), (std::vec![7], 1));
}

#[test]
fn the_last_spares_are_for_devices() {
    let host = Host::new(30);
    let blocks = guest(&host, 30, 0);
    blocks.hold();
    let touched = (0..SPARES).take_while(|number| touch(&blocks, *number) == Shown::Now).count();
    assert_eq!((touched, touch(&blocks, 20)), (8, Shown::Later));
    let gpa = |number: u64| LAYOUT.gpa(number as usize);
    assert!((8..16).all(|number| blocks.writing(gpa(number), 1).is_ok()));
    assert!(blocks.writing(gpa(16), 1).is_err());
    blocks.settle();
    assert_eq!(touch(&blocks, 20), Shown::Now);
}

#[test]
fn what_is_hidden_when_an_update_begins_stays_until_it_is_over() {
    let host = Host::new(4);
    let old = guest(&host, 4, 0);
    assert_eq!(touch(&old, 0), Shown::Now);
    assert!(old.hide(0, BLOCK_BYTES, |_| 1));
    let packed = old.hold();
    assert_eq!(old.release_hidden(1), Hiding::Waits);
    assert_eq!(packed.frames[0], BLOCK_BYTES);
    assert!(!old.hide(0, BLOCK_BYTES, |_| 2));
    old.settle();
    assert_eq!((old.release_hidden(1), host.frames(|frames| frames.owned.len())), (Hiding::Done, 0));
}

#[test]
fn spares_that_no_guest_has_are_passed_over() {
    let host = Host::new(8);
    let old = guest(&host, 4, 0);
    let next = adopt(&host, &old.hold(), 0);
    let mut used = [None; SPARES];
    (used[0], used[1], used[15]) = (Some(4), Some(u32::MAX), Some(0));
    next.use_spares(used);
    assert_eq!(there(&next), [0_usize; 0]);
    used = [Some(2); SPARES];
    next.use_spares(used);
    next.settle();
    assert_eq!((there(&next), next.source.frames(|frames| frames.owned.len())), (std::vec![2], 1));
}

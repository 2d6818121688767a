// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages that are freed one by one.

use super::*;

#[test]
fn a_block_is_free_once_its_last_page_is() {
    let mut partial = Partial::default();
    let pages = 512..1024_u64;
    for page in pages.clone().filter(|page| *page != 700) {
        assert_eq!(partial.free(page), None);
        assert_eq!(partial.free(page), None, "twice is once");
    }
    partial.reuse(600);
    assert_eq!(partial.free(700), None);
    assert_eq!(partial.free(600), Some(BLOCK_BYTES));
    assert_eq!(partial, Partial::default());
}

#[test]
fn of_many_blocks_the_oldest_is_not_known_any_more() {
    let mut partial = Partial::default();
    (0..511).for_each(|page| assert_eq!(partial.free(page), None));
    (1..=16).for_each(|block| assert_eq!(partial.free(block * 512), None));
    assert_eq!(partial.free(511), None, "its other pages are not known");
    assert_eq!((0..511).find_map(|page| partial.free(page)), Some(0), "all of them are freed once more");
    partial.clear();
    assert_eq!(partial, Partial::default());
}

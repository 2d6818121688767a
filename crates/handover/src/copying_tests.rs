// SPDX-License-Identifier: MIT OR Apache-2.0
use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

proptest! {
    /// Whatever was there, as many bytes as both have are copied, and no other is written.
    #[test]
    fn changed_blocks_are_copied(
        from in vec(any::<u8>(), 0..4 * BLOCK_BYTES),
        more in vec(any::<u8>(), 0..4),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        most in 0..4 * BLOCK_BYTES,
    ) {
        let mut into: Vec<u8> = from.iter().chain(&more).copied().collect();
        for (at, byte) in changes {
            if !into.is_empty() {
                let at = at.index(into.len());
                into[at] = byte;
            }
        }
        let from = &from[..most.min(from.len())];
        let mut expected = into.clone();
        expected[..from.len()].copy_from_slice(from);
        copy_changed(&mut into, from);
        prop_assert_eq!(into, expected);
    }
}

#[test]
fn too_short_a_place_is_filled() {
    let mut into = [1; BLOCK_BYTES + 3];
    copy_changed(&mut into, &[2; 3 * BLOCK_BYTES]);
    assert_eq!(into, [2; BLOCK_BYTES + 3]);
}

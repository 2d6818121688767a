// SPDX-License-Identifier: MIT OR Apache-2.0
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;
use zerocopy::FromZeros as _;

use super::*;
use crate::described::Described as _;
use crate::state::{Console, Late, Policy, Speculation, Vcpu};

const OWNER: Owner = Owner { guest: 3, vcpu: 0 };

/// A console with four bytes that were written and two that were typed.
fn console() -> Vec<u8> {
    let mut bytes = vec![0xee; HEAD_BYTES + 64];
    let mut block = BlockMut::<Console>::begin(&mut bytes, OWNER, VERSION).unwrap();
    let (state, tail) = block.parts().unwrap();
    (state.output_bytes, state.input_bytes) = (4.into(), 2.into());
    tail[..6].copy_from_slice(b"abcdef");
    block.finish(6).unwrap();
    bytes
}

fn refused(bytes: &[u8]) -> BlockError {
    let error = open::<Console>(bytes, OWNER).expect_err("refused");
    assert!(!std::format!("{error}").is_empty());
    error
}

#[test]
fn what_was_put_into_a_block_is_found() {
    let bytes = console();
    let (state, tail) = open::<Console>(&bytes, OWNER).unwrap();
    assert_eq!(state.split(tail), Some((&b"abcd"[..], &b"ef"[..])));
    assert_eq!(identify(&bytes), Some((BlockKind::Console, OWNER)));
}

/// A failure means that the bytes of blocks have changed: see `tests/schema.rs`.
#[test]
fn blocks_have_the_bytes_that_they_always_had() {
    const GOLDEN: &[(u32, u32)] = &[(3, 1_565_467_562), (4, 1_683_985_938)];
    let mut found = vec![0; HEAD_BYTES + 64];
    for version in OLDEST_VERSION..=VERSION {
        found.fill(0);
        let mut block = BlockMut::<Console>::begin(&mut found, OWNER, version).unwrap();
        block.parts().unwrap().0.output_bytes = 7.into();
        block.finish(3).unwrap();
        let sum = crate::write::CHECKSUM.checksum(&found);
        assert_eq!(Some(&(version, sum)), GOLDEN.iter().find(|golden| golden.0 == version));
    }
}

#[test]
fn a_console_that_states_more_than_there_is_has_no_bytes() {
    let (state, tail) = (Console { output_bytes: 4.into(), input_bytes: 3.into() }, [0; 6]);
    assert_eq!(state.split(&tail), None);
    assert_eq!(Console { output_bytes: u32::MAX.into(), ..state }.split(&tail), None);
}

#[test]
fn a_block_can_be_filled_and_finished_again() {
    let mut bytes = vec![0; HEAD_BYTES + 8];
    let mut block = BlockMut::<Console>::begin(&mut bytes, OWNER, VERSION).unwrap();
    for tail_bytes in [8, 5] {
        block.parts().unwrap().0.output_bytes = (tail_bytes as u32).into();
        block.finish(tail_bytes).unwrap();
    }
    let (state, tail) = open::<Console>(&bytes, OWNER).unwrap();
    assert_eq!((state.output_bytes.get(), tail.len()), (5, 5));
}

#[test]
fn a_block_that_was_begun_and_not_finished_is_refused() {
    let mut bytes = console();
    let _ = BlockMut::<Console>::begin(&mut bytes, OWNER, VERSION).unwrap();
    assert_eq!(refused(&bytes), BlockError::Unfinished);
    assert_eq!(identify(&bytes), None);
}

#[test]
fn nothing_of_what_memory_held_before_is_in_a_structure() {
    let mut bytes = vec![0xee; HEAD_BYTES];
    let mut block = BlockMut::<Vcpu>::begin(&mut bytes, OWNER, VERSION).unwrap();
    assert_eq!(*block.parts().unwrap().0, Vcpu::new_zeroed());
    block.finish(0).unwrap();
    assert_eq!(open::<Vcpu>(&bytes, OWNER), Ok((Vcpu::new_zeroed(), &[][..])));
}

#[test]
fn only_a_structure_that_lacks_fields_is_copied() {
    let mut bytes = vec![0; HEAD_BYTES];
    for (version, is_copied) in [(Speculation::SINCE - 1, true), (VERSION, false)] {
        let mut block = BlockMut::<Vcpu>::begin(&mut bytes, OWNER, version).unwrap();
        let (state, _) = block.parts().unwrap();
        (state.time.alarm, state.speculation.spec_ctrl) = (7.into(), 9.into());
        block.finish(0).unwrap();
        let mut widened = None;
        let (state, _) = open_in_place::<Vcpu>(&bytes, OWNER, &mut widened).unwrap();
        let spec_ctrl = if is_copied { 0 } else { 9 };
        assert_eq!((state.time.alarm.get(), state.speculation.spec_ctrl.get()), (7, spec_ctrl), "version {version}");
        assert_eq!(widened.is_some(), is_copied, "version {version}");
    }
}

#[test]
fn a_block_of_another_owner_is_refused() {
    let bytes = console();
    for owner in [Owner { guest: 2, ..OWNER }, Owner { vcpu: 1, ..OWNER }] {
        assert_eq!(open::<Console>(&bytes, owner), Err(BlockError::OtherOwner(OWNER)));
    }
    assert_eq!(open::<Policy>(&bytes, OWNER), Err(BlockError::OtherKind(BlockKind::Console as u32)));
}

#[test]
fn too_little_memory_is_refused() {
    let mut bytes = console();
    assert_eq!(refused(&bytes[..HEAD_BYTES - 1]), BlockError::TooSmall(HEAD_BYTES));
    assert_eq!(refused(&bytes[..HEAD_BYTES + 5]), BlockError::BadSum, "its tail is cut off");
    let small = &mut bytes[..HEAD_BYTES - 1];
    assert_eq!(BlockMut::<Late>::begin(small, OWNER, VERSION).map(drop), Err(BlockError::TooSmall(HEAD_BYTES)));
    let mut block = BlockMut::<Late>::begin(&mut bytes, OWNER, VERSION).unwrap();
    assert_eq!(block.finish(65), Err(BlockError::TooSmall(HEAD_BYTES + 65)));
}

#[test]
fn a_version_that_is_not_written_is_refused() {
    let mut bytes = console();
    for version in [0, OLDEST_VERSION - 1, VERSION + 1] {
        let begun = BlockMut::<Console>::begin(&mut bytes, OWNER, version).map(drop);
        assert_eq!(begun, Err(BlockError::OtherVersion(version)), "{version}");
    }
    bytes = console();
    bytes[8] = VERSION as u8 + 1;
    assert_eq!(refused(&bytes), BlockError::OtherVersion(VERSION + 1));
}

#[test]
fn every_version_that_is_written_is_read() {
    let mut bytes = vec![0; HEAD_BYTES];
    for version in OLDEST_VERSION..=VERSION {
        let mut block = BlockMut::<Late>::begin(&mut bytes, OWNER, version).unwrap();
        let (state, _) = block.parts().unwrap();
        *state = Late::new_zeroed();
        state.control.events = 44.into();
        let written = *state;
        block.finish(0).unwrap();
        assert_eq!(open::<Late>(&bytes, OWNER), Ok((written, &[][..])));
    }
}

#[test]
fn blocks_that_follow_one_another_are_parted() {
    let (mut console, late) = (console(), vec![7; 3]);
    console.truncate(HEAD_BYTES + 6);
    let both = [console.as_slice(), &late].concat();
    assert_eq!(split_first(&both), Some((console.as_slice(), late.as_slice())));
    assert_eq!(split_first(&both[..console.len() - 1]), None);
    assert_eq!(split_first(&both[..4]), None);
}

/// The sums as [`crate::block`] describes them, a word at a time.
fn slow_sums(parts: &[&[u8]]) -> [u64; 2] {
    let (mut a, mut b) = (0_u64, 0_u64);
    for part in parts {
        let mut whole = part.to_vec();
        // A part ends with a word that is filled up, even where that is all zeroes.
        whole.resize((part.len() / WORD_BYTES + 1) * WORD_BYTES, 0);
        for word in whole.chunks(WORD_BYTES) {
            a = a.wrapping_add(u64::from_le_bytes(word.try_into().unwrap()));
            b = b.wrapping_add(a);
        }
    }
    [a, b]
}

proptest! {
    #[test]
    fn sums_are_those_of_words(
        state in prop::collection::vec(any::<u8>(), 0..100),
        tail in prop::collection::vec(any::<u8>(), 0..100),
        tail_bytes: u64,
    ) {
        let header = BlockHeader { magic: MAGIC, tail_bytes: tail_bytes.into(), ..BlockHeader::new_zeroed() };
        let expected = slow_sums(&[header.as_bytes(), &state, &tail]);
        prop_assert_eq!(sums(&header, &state, &tail).map(|sum| sum.get()), expected);
    }

    #[test]
    fn a_block_with_a_changed_byte_is_refused(at in 0..HEADER_BYTES + size_of::<Console>() + 6, flip in 1u8..) {
        let mut bytes = console();
        // The tail is not next to the structure.
        let at = if at < HEADER_BYTES + size_of::<Console>() { at } else { at + HEAD_BYTES - HEADER_BYTES - size_of::<Console>() };
        bytes[at] ^= flip;
        refused(&bytes);
    }

    #[test]
    fn any_bytes_are_no_block_and_no_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..HEAD_BYTES + 64), is_begun: bool) {
        if is_begun && bytes.len() > MAGIC.len() {
            bytes[..MAGIC.len()].copy_from_slice(&MAGIC);
        }
        prop_assert!(open::<Late>(&bytes, OWNER).is_err());
        let _ = identify(&bytes);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever the bytes, nothing panics, and what is accepted keeps its promises.

use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::images::Elf;
use super::samples::Sample;
use crate::image::{Image, MAX_IMAGE_BYTES};
use crate::layout::padded;
use crate::record::Record;

fn changes() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)
}

fn changed(mut bytes: Vec<u8>, changes: &[(prop::sample::Index, u8)]) -> (Vec<u8>, bool) {
    let before = bytes.clone();
    changes.iter().for_each(|(at, byte)| bytes[at.index(before.len())] = *byte);
    let is_changed = bytes != before;
    (bytes, is_changed)
}

proptest! {
    #[test]
    fn any_numbers_come_through_as_they_were(
        generation in 2u64..,
        tsc_hz in 1u64..,
        line in "[ -~]{0,300}",
        cpus in 1usize..300,
        stamps in any::<[u64; 4]>(),
    ) {
        let mut sample = Sample::new();
        sample.host.generation = generation.into();
        sample.host.version = padded(&line);
        sample.clock.tsc_hz = tsc_hz.into();
        sample.cpus = vec![sample.cpus[1]; cpus];
        sample.stamps.stopped = stamps[0].into();
        let bytes = sample.record();
        let record = Record::open(&bytes).expect("good");
        prop_assert_eq!(record.host, sample.host);
        prop_assert_eq!(record.clock, sample.clock);
        prop_assert!(record.cpus.iter().eq(sample.cpus.iter().copied()));
        prop_assert_eq!(record.stamps, Some(sample.stamps));
    }

    #[test]
    fn a_changed_record_is_refused(changes in changes()) {
        let (bytes, is_changed) = changed(Sample::new().record(), &changes);
        prop_assert_eq!(Record::open(&bytes).is_err(), is_changed);
    }

    #[test]
    fn any_bytes_make_no_record_and_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(Record::open(&bytes).is_err());
    }

    #[test]
    fn an_image_that_is_accepted_can_be_placed_in_any_parts(changes in changes(), most in 1_usize..0x3000) {
        let (bytes, _) = changed(Elf::new().bytes(), &changes);
        if let Ok(image) = Image::parse(&bytes) {
            prop_assert!(image.memory_bytes() <= MAX_IMAGE_BYTES);
            let mut slot = vec![1; image.memory_bytes() as usize];
            prop_assert_eq!(image.place(&bytes, &mut slot, 0, usize::MAX), None);
            let mut in_parts = vec![2; slot.len()];
            let mut from = Some(0);
            while let Some(at) = from {
                from = image.place(&bytes, &mut in_parts, at, most);
                prop_assert!(from.is_none_or(|next| next == at + most));
            }
            prop_assert!(in_parts == slot);
            prop_assert_eq!(reread(&image, &bytes, &slot), bytes);
        }
    }
}

/// The file, read from where its image was placed.
fn reread(image: &Image, file: &[u8], slot: &[u8]) -> Vec<u8> {
    let mut read = Vec::new();
    while read.len() < file.len() {
        let piece = image.placed(file, slot, read.len() as u64);
        assert!(!piece.is_empty(), "nothing at {}", read.len());
        read.extend_from_slice(piece);
    }
    read
}

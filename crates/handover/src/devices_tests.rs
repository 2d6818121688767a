// SPDX-License-Identifier: MIT OR Apache-2.0
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

fn written(payloads: &[Vec<u8>], room: usize) -> Result<(Vec<u8>, u32), Full> {
    let mut bytes = vec![0x55; room];
    let mut writer = DeviceWriter::new(&mut bytes);
    for (instance, payload) in (0..).zip(payloads) {
        writer.add((7, instance, 2), |place| {
            place.get_mut(..payload.len()).ok_or(Full)?.copy_from_slice(payload);
            Ok(payload.len())
        })?;
    }
    let (blocks, used) = writer.finish();
    bytes.truncate(used);
    Ok((bytes, blocks))
}

fn room_for(payloads: &[Vec<u8>]) -> usize {
    payloads.iter().map(|payload| block_bytes(payload.len())).sum()
}

#[test]
fn a_tail_without_room_is_full() {
    let payloads = [vec![1; 9], vec![2; 16]];
    let needed = room_for(&payloads);
    assert!(written(&payloads, needed).is_ok());
    for room in 0..needed {
        assert_eq!(written(&payloads, room), Err(Full), "{room} bytes");
    }
}

#[test]
fn a_tail_of_another_number_of_blocks_is_refused() {
    let (bytes, blocks) = written(&[vec![1; 9], vec![]], 128).unwrap();
    assert_eq!(blocks, 2);
    for count in [0, 1, 3, u32::MAX] {
        assert!(DeviceBlocks::open(count, &bytes).is_none(), "{count}");
    }
    assert!(DeviceBlocks::open(2, &bytes[..bytes.len() - 1]).is_none());
    assert!(DeviceBlocks::open(0, &[]).is_some());
}

proptest! {
    #[test]
    fn what_was_written_is_read(payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8)) {
        let (bytes, blocks) = written(&payloads, room_for(&payloads)).unwrap();
        let read = DeviceBlocks::open(blocks, &bytes).expect("whole blocks");
        prop_assert_eq!(read.iter().count(), payloads.len());
        for ((header, payload), (instance, expected)) in read.iter().zip((0..).zip(&payloads)) {
            let tag = (header.kind.get(), header.instance.get(), header.version.get());
            prop_assert_eq!((tag, payload), ((7, instance, 2), &expected[..]));
        }
    }

    #[test]
    fn any_bytes_are_refused_or_read_to_their_end(bytes in prop::collection::vec(any::<u8>(), 0..80), count in 0u32..8) {
        if let Some(blocks) = DeviceBlocks::open(count, &bytes) {
            prop_assert_eq!(blocks.iter().count(), count as usize);
            prop_assert_eq!(blocks.iter().map(|(_, payload)| block_bytes(payload.len())).sum::<usize>(), bytes.len());
        }
    }
}

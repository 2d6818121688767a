// SPDX-License-Identifier: MIT OR Apache-2.0
//! Damaged bundles, and files that are none.

use std::string::ToString;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

#[test]
fn a_bundle_cut_anywhere_is_refused() {
    let bytes = sample();
    for length in 0..bytes.len() {
        let problem = problem(&bytes[..length]);
        assert!(matches!(problem, Problem::Truncated { .. }), "{length}: {problem:?}");
    }
}

#[test]
fn any_flipped_bit_is_noticed_or_harmless() {
    let good = sample();
    let bundle = Bundle::parse(&good).expect("good");
    let mut noticed = 0;
    for bit in 0..good.len() * 8 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let Ok(read) = Bundle::parse(&bytes) else {
            noticed += 1;
            continue;
        };
        assert_eq!(read.manifest(), bundle.manifest(), "bit {bit}");
        for (name, content) in FILES {
            match read.verify(name) {
                Ok(found) => assert_eq!(found, content, "bit {bit}"),
                Err(_) => noticed += 1,
            }
        }
    }
    let content_bits: usize = FILES.iter().map(|(_, content)| content.len() * 8).sum();
    assert!(noticed > content_bits);
}

#[test]
fn a_damaged_file_is_named_with_its_place() {
    let mut bytes = sample();
    let place = bytes.windows(6).position(|window| window == b"kernel").expect("it is there");
    bytes[place] ^= 1;
    let error = Bundle::parse(&bytes).expect("headers are whole").verify("vmlinuz").expect_err("damaged");
    assert_eq!(error.entry, "vmlinuz");
    assert!(bytes[error.offset_bytes..].starts_with(b"070701"));
    assert!(error.to_string().contains("copy the bundle again"), "{error}");
}

#[test]
fn another_file_is_no_bundle() {
    assert_eq!(problem(&[0x7f; 4096]), Problem::NoArchive);
    assert_eq!(problem(b""), Problem::Truncated { missing_bytes: 110 });
}

#[test]
fn an_initrd_is_no_bundle() {
    let mut initrd = Vec::new();
    write::append(&mut initrd, "init", b"#!/bin/sh");
    write::append(&mut initrd, "TRAILER!!!", &[]);
    let error = Bundle::parse(&initrd).expect_err("no manifest");
    assert_eq!(
        error.to_string(),
        "bundle entry \"init\" at byte 0: the first entry is no manifest; make one with `baton bundle host.toml -o \
         FILE`"
    );
    assert_eq!(problem(&archive(b"short", &[])), Problem::NoManifest);
    assert_eq!(problem(&archive(&[], &[])), Problem::NoManifest);
}

#[test]
fn a_manifest_of_another_version_is_distinguished_from_a_damaged_one() {
    for found in [0, OLDEST_MANIFEST_VERSION - 1, OLDEST_MANIFEST_VERSION + 1, MANIFEST_VERSION + 1] {
        let mut content = manifest(vec![]);
        content.truncate(content.len() - 4);
        content[4] = found as u8;
        let damaged = [&content[..], &[0; 4]].concat();
        content.extend(crc32(&content).to_le_bytes());
        assert_eq!(problem(&archive(&content, &[])), Problem::UnknownVersion { found });
        assert!(matches!(problem(&archive(&damaged, &[])), Problem::BadChecksum { stated: 0, .. }));
    }
}

#[test]
fn a_manifest_with_more_behind_it_is_malformed() {
    for guests in [vec![], vec![newer()]] {
        let mut content = manifest(guests);
        content.truncate(content.len() - 4);
        content.push(0);
        content.extend(crc32(&content).to_le_bytes());
        assert_eq!(problem(&archive(&content, &[])), Problem::Malformed);
    }
}

#[test]
fn a_variant_that_is_unknown_is_malformed() {
    let mut content = manifest(vec![newer()]);
    content.truncate(content.len() - 4);
    // Behind the CPU model there are no SMBIOS tables, no disks, and a flag.
    let last = [CpuModel::EpycMilan as u8, 0x60, 0x80, 0xf4];
    let at = content.windows(4).rposition(|bytes| bytes == last).expect("it is there");
    content[at] += 1;
    content.extend(crc32(&content).to_le_bytes());
    assert_eq!(problem(&archive(&content, &[])), Problem::Malformed);
}

#[test]
fn files_are_what_the_manifest_lists() {
    assert_eq!(problem(&archive(&manifest(vec![]), &[("extra", b"")])), Problem::NotAsListed);
    let files = vec![FileRecord { name: "a".to_string(), bytes: 1, crc32: 0 }];
    let content = write::encode_manifest(&Manifest { files, ..Manifest::default() });
    assert_eq!(problem(&archive(&content, &[("a", b"12")])), Problem::NotAsListed);
    assert_eq!(problem(&archive(&content, &[])), Problem::Missing);
}

#[test]
fn a_bad_header_names_its_field() {
    let good = sample();
    let with = |at: usize, text: &[u8]| {
        let mut bytes = good.clone();
        bytes[at..at + text.len()].copy_from_slice(text);
        problem(&bytes)
    };
    assert_eq!(with(6 + 6 * 8, b"+0000001"), Problem::BadNumber(HeaderField::FileSize));
    assert_eq!(with(6 + 11 * 8, b"0000000g"), Problem::BadNumber(HeaderField::NameSize));
    assert_eq!(with(6 + 11 * 8, b"00000001"), Problem::BadName);
    assert_eq!(with(6 + 11 * 8, b"ffffffff"), Problem::BadName);
    assert_eq!(with(110, b"\xff"), Problem::BadName);
    assert_eq!(with(112, b"\0"), Problem::BadName);
    assert!(matches!(with(6 + 6 * 8, b"ffffffff"), Problem::Truncated { .. }));
}

/// A guest that the oldest version cannot express.
fn newer() -> GuestConfig {
    GuestConfig { cpu: CpuModel::EpycMilan, ..debian() }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert!(Bundle::parse(&bytes).is_err());
        let _ = Bundle::parse(&archive(&bytes, &[("a", &bytes)]));
    }

    #[test]
    fn an_arbitrary_manifest_with_the_right_checksum_never_panics(
        encoded in prop::collection::vec(any::<u8>(), 0..300),
        version in prop_oneof![Just(OLDEST_MANIFEST_VERSION), Just(MANIFEST_VERSION)],
    ) {
        let mut content = MANIFEST_MAGIC.to_vec();
        content.extend(version.to_le_bytes());
        content.extend(encoded);
        content.extend(crc32(&content).to_le_bytes());
        let _ = Bundle::parse(&archive(&content, &[]));
    }

    #[test]
    fn any_damage_leaves_verified_files_as_they_were(
        damage in prop::collection::vec((0..1000_usize, any::<u8>()), 1..10),
    ) {
        let mut bytes = sample();
        for (at, byte) in damage {
            let length = bytes.len();
            bytes[at % length] = byte;
        }
        if let Ok(bundle) = Bundle::parse(&bytes) {
            for (name, content) in FILES {
                prop_assert!(bundle.verify(name).map_or(true, |found| found == content));
            }
        }
    }
}

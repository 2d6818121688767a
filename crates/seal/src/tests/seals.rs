// SPDX-License-Identifier: MIT OR Apache-2.0
//! Seals that hold, and all that break.

use std::vec::Vec;

use proptest::prelude::*;

use super::{check, check_in, key, sealed};
use crate::{Origin, SEAL_BYTES, SEAL_VERSION, Seal, SealError, Trust, Verify};

const IMAGE: &[u8] = &[0x5a; 300];

#[test]
fn a_sealed_image_is_whole_and_its_signer_known() {
    let (unsigned, signed) = (sealed(IMAGE, None), sealed(IMAGE, Some(&key(1))));
    let keys = [key(2).public(), key(1).public()];
    assert_eq!(check(&unsigned, Trust::Any), Ok(Origin::Unsigned));
    assert_eq!(check(&signed, Trust::Any), Ok(Origin::Signed(key(1).public())));
    assert_eq!(check_in(17, &signed, Trust::Keys(&keys)), Ok(Origin::Signed(key(1).public())));
    assert_eq!(unsigned.len(), IMAGE.len() + SEAL_BYTES);
}

#[test]
fn a_host_with_keys_takes_only_what_they_have_signed() {
    let keys = [key(1).public()];
    let (unsigned, other) = (sealed(IMAGE, None), sealed(IMAGE, Some(&key(2))));
    assert_eq!(check(&unsigned, Trust::Keys(&keys)), Err(SealError::Unsigned { keys: 1 }));
    let untrusted = SealError::Untrusted { signer: key(2).public().id(), keys: 1 };
    assert_eq!(check(&other, Trust::Keys(&keys)), Err(untrusted));
    assert_eq!(check(&unsigned, Trust::Keys(&[])), Err(SealError::Unsigned { keys: 0 }));
}

#[test]
fn a_signature_does_not_vouch_for_another_image() {
    let mut forged = sealed(&[1; 300], None);
    let genuine = sealed(IMAGE, Some(&key(1)));
    // Signer and signature, as the table in `layout` has them.
    forged[340..436].copy_from_slice(&genuine[340..436]);
    let signer = key(1).public().id();
    assert_eq!(check(&forged, Trust::Keys(&[key(1).public()])), Err(SealError::BadSignature { signer }));
}

#[test]
fn a_file_without_a_seal_or_with_one_of_another_version_is_refused_so() {
    assert_eq!(Seal::split(IMAGE), Err(SealError::Missing));
    assert_eq!(Seal::split(b""), Err(SealError::Missing));
    let mut newer = sealed(IMAGE, None);
    let version = newer.len() - 12;
    newer[version] = 9;
    assert_eq!(Seal::split(&newer), Err(SealError::OtherVersion(9)));
    assert_ne!(SEAL_VERSION, 9);
}

#[test]
fn a_file_that_was_cut_or_grew_is_refused() {
    let whole = sealed(IMAGE, None);
    for start in 1..whole.len() {
        assert!(Seal::split(&whole[start..]).is_err(), "{start} bytes gone from its start");
        assert!(check(&whole[..start], Trust::Any).is_err(), "{start} bytes left of its start");
    }
    let longer = [b"x", &whole[..]].concat();
    assert_eq!(Seal::split(&longer), Err(SealError::OtherLength { stated_bytes: 300, present_bytes: 301 }));
}

#[test]
fn every_error_names_its_hint() {
    let errors = [
        SealError::Missing,
        SealError::OtherVersion(2),
        SealError::Malformed("why"),
        SealError::OtherLength { stated_bytes: 1, present_bytes: 2 },
        SealError::OtherDigest { stated: [1; 32], computed: [2; 32] },
        SealError::Unsigned { keys: 1 },
        SealError::Untrusted { signer: key(1).public().id(), keys: 2 },
        SealError::BadSignature { signer: key(1).public().id() },
    ];
    for error in errors {
        assert!(!std::format!("{error}").is_empty() && error.hint().len() > 20, "{error}");
    }
    let other = std::format!("{}", errors[4]);
    assert_eq!(other, "it is not what was sealed: its SHA-256 begins with 02020202, not 01010101");
}

#[test]
fn keys_win_over_a_policy_that_checks_nothing() {
    assert_eq!(Verify::None.on_a_host_with_keys(true), Verify::Early);
    assert_eq!(Verify::None.on_a_host_with_keys(false), Verify::None);
    assert_eq!(Verify::Sha256.on_a_host_with_keys(true), Verify::Sha256);
    for word in ["sha256", "early", "none"] {
        assert_eq!(std::format!("{}", word.parse::<Verify>().expect("a policy")), word);
    }
    assert!("late".parse::<Verify>().is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// A file with any change is refused; one without a signature, too, since all of it is sealed.
    #[test]
    fn one_flipped_bit_anywhere_is_refused(
        image in prop::collection::vec(any::<u8>(), 0..300),
        is_signed: bool,
        place: prop::sample::Index,
        bit in 0..8u32,
    ) {
        let signer = key(3);
        let mut file: Vec<u8> = sealed(&image, is_signed.then_some(&signer));
        let place = place.index(file.len());
        file[place] ^= 1 << bit;
        let keys = [signer.public()];
        prop_assert!(check(&file, Trust::Any).is_err(), "byte {place}");
        prop_assert!(check(&file, Trust::Keys(&keys)).is_err(), "byte {place}");
    }

    #[test]
    fn no_bytes_panic(file in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = check(&file, Trust::Any);
    }
}

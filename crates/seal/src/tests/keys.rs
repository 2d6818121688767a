// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys as they are written down.

use std::format;
use std::string::ToString as _;

use super::key;
use crate::{KeyError, PublicKey, SecretKey};

#[test]
fn keys_are_read_as_they_are_written() {
    let (secret, public) = (key(5), key(5).public());
    let read: SecretKey = secret.text().to_string().parse().expect("a key");
    assert_eq!(read.public(), public);
    assert_eq!(public.to_string().parse(), Ok(public));
    assert_eq!(format!("{public}\n").to_uppercase().replace("ED25519", "ed25519").parse(), Ok(public));
    assert!(public.to_string().starts_with(&format!("ed25519:{}", public.id())));
}

#[test]
fn the_standards_key_pair_comes_out() {
    // RFC 8032, section 7.1, test 1.
    let secret = "ed25519-secret:9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
    let public = "ed25519:d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    assert_eq!(secret.parse::<SecretKey>().expect("a key").public().to_string(), public);
}

#[test]
fn bytes_that_are_no_key_are_refused_with_the_reason() {
    let public = |text: &str| text.parse::<PublicKey>().expect_err("no key");
    assert_eq!(public("ssh-ed25519 AAAA"), KeyError::NoPrefix);
    assert_eq!(public(&key(1).text().to_string()), KeyError::Secret);
    assert_eq!(public("ed25519:12"), KeyError::BadDigits);
    assert_eq!(public(&format!("ed25519:{}", "g".repeat(64))), KeyError::BadDigits);
    assert_eq!(public(&format!("ed25519:{}", "0".repeat(64))), KeyError::Weak);
    let secret = |text: &str| text.parse::<SecretKey>().map(drop).expect_err("no key");
    assert_eq!(secret(&key(1).public().to_string()), KeyError::NoSecretPrefix);
    assert_eq!(secret("ed25519-secret:é"), KeyError::BadDigits);
}

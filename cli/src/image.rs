// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images of Baton as files: their seals, their descriptions, and the forms that loaders want: a file in the form of a
//! Linux kernel ([`linux`]), a disc that starts by itself ([`iso`]). The ELF file itself serves PVH and Multiboot2.

pub mod iso;
pub mod linux;
pub mod packed;

use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail};
use handover::schema::{self, Part};
use handover::{Image, Kind};
use seal::{Check, Floor, Origin, Portable, PublicKey, Seal, SealError, SecretKey, Trust};
use serde::Serialize;
use wire::HostInfo;
use zerocopy::IntoBytes as _;

/// The most bytes of an image's file: more is a mistake, found before it is read into memory.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// The description of an image's file.
#[derive(Debug, Serialize)]
pub struct Description {
    /// Its version.
    pub version: String,
    /// Its build; empty if it gives none.
    pub build: String,
    /// Bytes of the file, without the seal.
    pub file_bytes: u64,
    /// Bytes of memory it wants.
    pub memory_bytes: u64,
    /// The oldest hand-over version that it reads and writes.
    pub oldest: u32,
    /// The newest.
    pub newest: u32,
    /// The contents of each of these versions that this tool knows.
    pub formats: Vec<HandOver>,
    /// SHA-256, in hexadecimal digits.
    pub sha256: String,
    /// Its security version; 0 where it gives none.
    pub security_version: u32,
    /// The key that has signed it.
    pub signer: Option<String>,
    /// The defect of its seal.
    pub seal_error: Option<String>,
}

/// The contents of one hand-over version.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct HandOver {
    /// Its number.
    pub version: u32,
    /// The record's sections.
    pub sections: Vec<String>,
    /// The state that is saved beside the record at the last moment.
    pub blocks: Vec<String>,
}

impl HandOver {
    /// Returns those of `versions` that this tool knows, oldest first.
    fn known(versions: RangeInclusive<u32>) -> Vec<Self> {
        schema::versions().filter(|version| versions.contains(version)).map(Self::of).collect()
    }

    fn of(version: u32) -> Self {
        let sections = Kind::ALL.iter().filter(|kind| kind.since() <= version).map(|kind| format!("{kind:?}"));
        let blocks = schema::structures(version).filter_map(|(structure, _)| match structure.part {
            Part::Block(kind) => Some(format!("{kind:?}")),
            _ => None,
        });
        Self { version, sections: sections.collect(), blocks: blocks.collect() }
    }
}

/// Reads an image's file, in its plain form, without checking it.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let metadata = fs::metadata(path).with_context(|| format!("{} cannot be read", path.display()))?;
    if metadata.len() > MAX_FILE_BYTES {
        bail!("{} is too long for an image; give the hypervisor's ELF file", path.display());
    }
    let file = fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let plain = packed::unpacked(&file).with_context(|| path.display().to_string())?;
    Ok(plain.unwrap_or(file))
}

/// Returns the file with a seal: its own, or, where it has none, an unsigned one.
pub fn sealed(file: Vec<u8>) -> Vec<u8> {
    match Seal::split(&file) {
        Err(SealError::Missing) => append(&file, None),
        _ => file,
    }
}

/// Returns the file's image with a new seal, signed where there is a key. An image that differs from its seal is
/// refused: a signature would vouch for bytes that were changed after they were sealed.
pub fn seal_new(file: &[u8], key: Option<&SecretKey>) -> Result<Vec<u8>> {
    if let Ok((image, seal)) = Seal::split(file) {
        const HINT: &str = "copy the image again, or sign it as it is with --reseal";
        seal.compare(&digest(image)).map_err(|error| anyhow!("{error}; {HINT}"))?;
    }
    reseal(file, key)
}

/// Seals the image with a signature without checking the seal that it has.
pub fn reseal(file: &[u8], key: Option<&SecretKey>) -> Result<Vec<u8>> {
    let image = match Seal::split(file) {
        Ok((image, _)) => image,
        Err(SealError::Missing) => file,
        Err(error) => bail!("{error}; {}", error.hint()),
    };
    Image::describe(image).map_err(|error| anyhow::anyhow!("it is no image of Baton: {error}"))?;
    Ok(append(image, key))
}

/// Checks that the file's image is whole, and signed by one of the keys if there are any.
pub fn verify(file: &[u8], keys: &[PublicKey]) -> Result<Origin, SealError> {
    let (image, seal) = Seal::split(file)?;
    let trust = if keys.is_empty() { Trust::Any } else { Trust::Keys(keys) };
    seal.judge(&digest(image), trust)
}

/// Checks whether a host would accept the file: its description, its seal, and the host's demands. Sends nothing.
pub fn check_for(file: &[u8], host: &HostInfo, is_downgrade: bool) -> Result<()> {
    let image = Seal::split(file).map_or(file, |(image, _)| image);
    let description = Image::describe(image).map_err(|error| anyhow!("it is no image of Baton: {error}"))?;
    verify(file, &keys_of(host)?).map_err(|error| anyhow!("{error}; {}", error.hint()))?;
    let (oldest, newest) = (description.note().oldest.get(), description.note().newest.get());
    if newest.min(host.newest_handover) < oldest.max(host.oldest_handover) {
        bail!(
            "it reads hand-over versions {oldest} to {newest}, and the host writes {} to {}; update to a release \
             between them first",
            host.oldest_handover,
            host.newest_handover
        );
    }
    let floor = Floor { own: host.security_version, permits_downgrade: host.permits_downgrade };
    floor
        .admit(description.security_version(), is_downgrade)
        .map_err(|downgrade| anyhow!("it is too old: {downgrade}; {}", downgrade.hint()))
}

/// Returns the keys that a host trusts.
pub fn keys_of(host: &HostInfo) -> Result<Vec<PublicKey>> {
    let parse = |text: &String| text.parse().map_err(|error| anyhow!("the host's key {text:?}: {error}"));
    host.trusted_keys.iter().map(parse).collect()
}

/// Describes the file.
pub fn describe(file: &[u8]) -> Result<Description> {
    let image = Seal::split(file).map_or(file, |(image, _)| image);
    let description = Image::describe(image).map_err(|error| anyhow::anyhow!("it is no image of Baton: {error}"))?;
    let origin = verify(file, &[]);
    Ok(Description {
        version: description.note().version().to_owned(),
        build: description.build().to_owned(),
        file_bytes: image.len() as u64,
        memory_bytes: description.memory_bytes(),
        oldest: description.note().oldest.get(),
        newest: description.note().newest.get(),
        formats: HandOver::known(description.note().oldest.get()..=description.note().newest.get()),
        security_version: description.security_version(),
        sha256: digest(image).iter().map(|byte| format!("{byte:02x}")).collect(),
        signer: match &origin {
            Ok(Origin::Signed(key)) => Some(key.to_string()),
            _ => None,
        },
        seal_error: origin.err().map(|error| error.to_string()),
    })
}

fn append(image: &[u8], key: Option<&SecretKey>) -> Vec<u8> {
    [image, Seal::of(image, key).as_bytes()].concat()
}

pub(crate) fn digest(image: &[u8]) -> seal::Digest {
    let mut check = Check::new(Portable, image.len() as u64);
    while !check.step(u64::MAX, |at| &image[at as usize..]) {}
    check.digest()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::test_image;

    #[test]
    fn a_seal_is_added_once_and_replaced_by_a_signature() {
        let key = SecretKey::from_seed([1; 32]);
        let unsigned = sealed(b"an image".to_vec());
        assert_eq!(verify(&unsigned, &[]), Ok(Origin::Unsigned));
        assert_eq!(sealed(unsigned.clone()), unsigned);
        let signed = append(&unsigned[..8], Some(&key));
        assert_eq!(verify(&signed, &[key.public()]), Ok(Origin::Signed(key.public())));
        assert_eq!(sealed(signed.clone()), signed, "a signature is not lost");
        assert!(verify(&unsigned, &[key.public()]).is_err());
    }

    #[test]
    fn the_sections_of_a_known_version_are_listed() {
        let known = HandOver::known(0..=handover::VERSION + 1);
        assert_eq!(
            known.iter().map(|format| format.version).collect::<Vec<_>>(),
            schema::versions().collect::<Vec<_>>()
        );
        let newest = known.last().expect("its own");
        assert_eq!(newest.sections.len(), Kind::ALL.len());
        assert_eq!((newest.sections[0].as_str(), newest.blocks[0].as_str()), ("Host", "Policy"));
        assert_eq!(HandOver::known(handover::VERSION + 1..=handover::VERSION + 9), []);
    }

    #[test]
    fn an_image_that_differs_from_its_seal_is_not_signed_unless_that_is_asked_for() {
        let key = SecretKey::from_seed([1; 32]);
        let mut spoilt = sealed(test_image(0, 1, 1));
        spoilt[0x1010] ^= 1;
        let error = seal_new(&spoilt, Some(&key)).expect_err("spoilt").to_string();
        assert!(error.contains("it is not what was sealed") && error.contains("--reseal"), "{error}");
        let signed = reseal(&spoilt, Some(&key)).expect("asked for");
        assert_eq!(verify(&signed, &[key.public()]), Ok(Origin::Signed(key.public())));
    }

    /// Returns a host of security version 5 that writes hand-over versions 3 and 4.
    fn host(keys: &[PublicKey], permits_downgrade: bool) -> HostInfo {
        let trusted_keys = keys.iter().map(ToString::to_string).collect();
        HostInfo { trusted_keys, permits_downgrade, ..crate::testing::host_info() }
    }

    /// Returns why the host would refuse the file; empty where it would not.
    fn refusal(file: &[u8], host: &HostInfo, is_downgrade: bool) -> String {
        check_for(file, host, is_downgrade).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_file_that_the_host_would_refuse_is_not_sent() {
        let (key, other) = (SecretKey::from_seed([1; 32]), SecretKey::from_seed([2; 32]));
        let open = host(&[], true);
        let good = test_image(5, 3, 4);
        assert_eq!(refusal(&sealed(good.clone()), &open, false), "");
        let mut spoilt = sealed(good.clone());
        spoilt[0x1010] ^= 1;
        let cases = [
            (vec![0; 4096], &open, "it is no image of Baton"),
            (spoilt, &open, "it is not what was sealed"),
            (sealed(test_image(5, 5, 9)), &open, "hand-over versions 5 to 9, and the host writes 3 to 4"),
            (sealed(test_image(5, 1, 2)), &open, "hand-over versions 1 to 2, and the host writes 3 to 4"),
            (sealed(good.clone()), &host(&[key.public()], false), "it is not signed"),
            (append(&good, Some(&other)), &host(&[key.public()], false), "which this host does not trust"),
        ];
        for (file, host, expected) in cases {
            let refusal = refusal(&file, host, false);
            assert!(refusal.contains(expected), "{refusal:?} lacks {expected:?}");
        }
        assert_eq!(refusal(&append(&good, Some(&key)), &host(&[key.public()], false), false), "");
    }

    #[test]
    fn an_image_of_a_lower_security_version_is_sent_only_if_host_and_operator_want_it() {
        let old = sealed(test_image(4, 3, 4));
        let refused = refusal(&old, &host(&[], true), false);
        assert!(refused.contains("security version is 4, and this host's is 5; give --allow-downgrade"), "{refused}");
        assert_eq!(refusal(&old, &host(&[], true), true), "");
        let refused = refusal(&old, &host(&[], false), true);
        assert!(refused.contains("permits no downgrade"), "{refused}");
    }

    #[test]
    fn a_file_without_an_image_is_not_signed() {
        let error = seal_new(b"#!/bin/sh", None).expect_err("no image").to_string();
        assert!(error.contains("no image of Baton") && error.contains("no usable ELF file"), "{error}");
    }
}

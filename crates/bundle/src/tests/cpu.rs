// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of guests' CPU models.

use serde::Deserialize as _;
use serde::de::IntoDeserializer as _;
use serde::de::value::{Error, StrDeserializer};

use super::reading::VERSION_AT;
use super::*;

const ALL: [CpuModel; 7] =
    [CpuModel::Host, CpuModel::V2, CpuModel::V3, CpuModel::V4, CpuModel::Epyc, CpuModel::EpycRome, CpuModel::EpycMilan];

#[test]
fn models_are_read_guest_by_guest() {
    let guest = |(number, cpu): (usize, CpuModel)| GuestConfig { name: number.to_string(), cpu, ..debian() };
    let built = |cpus: &[CpuModel]| {
        write::build(HOST, cpus.iter().copied().enumerate().map(guest).collect(), &FILES).expect("good")
    };
    let bytes = built(&ALL);
    assert_eq!(bytes[VERSION_AT..][..2], MANIFEST_VERSION.to_le_bytes());
    let bundle = Bundle::parse(&bytes).expect("good");
    assert!(bundle.manifest().guests.iter().map(|guest| guest.cpu).eq(ALL));
    assert_eq!(built(&[CpuModel::Host])[VERSION_AT..][..2], OLDEST_MANIFEST_VERSION.to_le_bytes());
}

#[test]
fn a_model_has_one_name_and_a_digest_of_its_own() {
    let digests: std::collections::BTreeSet<u64> =
        ALL.iter().map(|cpu| GuestConfig { cpu: *cpu, ..debian() }.digest()).collect();
    assert_eq!(digests.len(), ALL.len());
    for model in ALL {
        let name: StrDeserializer<'_, Error> = model.model().unwrap_or("host").into_deserializer();
        assert_eq!(CpuModel::deserialize(name), Ok(model));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of guests' CPU models.

use serde::Deserialize as _;
use serde::de::IntoDeserializer as _;
use serde::de::value::{Error, StrDeserializer};

use super::reading::VERSION_AT;
use super::*;
use crate::manifest::VERSION_11;

const ALL: [CpuModel; 7] =
    [CpuModel::Host, CpuModel::V2, CpuModel::V3, CpuModel::V4, CpuModel::Epyc, CpuModel::EpycRome, CpuModel::EpycMilan];

#[test]
fn models_are_read_guest_by_guest() {
    let guest = |(number, cpu): (usize, CpuModel)| GuestConfig { name: number.to_string(), cpu, ..debian() };
    let built = |cpus: &[CpuModel]| {
        write::build(HOST, cpus.iter().copied().enumerate().map(guest).collect(), &FILES).expect("good")
    };
    let bytes = built(&ALL);
    assert_eq!(bytes[VERSION_AT..][..2], VERSION_11.to_le_bytes());
    let bundle = Bundle::parse(&bytes).expect("good");
    assert!(bundle.manifest().guests.iter().map(|guest| guest.cpu).eq(ALL));
    assert_eq!(built(&[CpuModel::Host])[VERSION_AT..][..2], OLDEST_MANIFEST_VERSION.to_le_bytes());
}

#[test]
fn unknown_models_and_those_of_other_guests_are_refused() {
    let manifest = Manifest { guests: vec![debian()], ..Manifest::default() };
    let with = |cpus: &[u32]| {
        let mut tables = manifest.tables();
        tables.cpus = cpus.to_vec();
        manifest.clone().with_tables(tables)
    };
    assert_eq!(with(&[6]).map(|manifest| manifest.guests[0].cpu), Some(CpuModel::EpycMilan));
    assert!(with(&[7]).is_none() && with(&[u32::MAX]).is_none() && with(&[]).is_none() && with(&[0, 0]).is_none());
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

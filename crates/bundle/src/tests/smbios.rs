// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of what guests' SMBIOS tables have from the configuration.

use std::string::String;

use proptest::prelude::*;

use super::reading::VERSION_AT;
use super::*;

const UUID: &str = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";

fn smbios(uuid: Option<&str>, serial: Option<&str>, oem_strings: &[&str]) -> SmbiosConfig {
    let uuid = uuid.map(|uuid| uuid.parse().expect("a UUID"));
    SmbiosConfig::new(uuid, serial, oem_strings.iter().copied())
}

/// Guests with these tables.
fn built(tables: Vec<SmbiosConfig>) -> Result<Vec<u8>, BundleError> {
    let guest = |(number, smbios): (usize, _)| GuestConfig { name: number.to_string(), smbios, ..debian() };
    write::build(HOST, tables.into_iter().enumerate().map(guest).collect(), &FILES)
}

#[test]
fn what_version_11_adds_is_read_guest_by_guest() {
    let tables = vec![
        smbios(Some(UUID), None, &[]),
        smbios(None, None, &[]),
        smbios(None, Some("ds=nocloud;s=http://10.0.0.1/"), &[]),
        smbios(None, None, &["io.systemd.credential:a=b", "c"]),
    ];
    let bytes = built(tables.clone()).expect("good");
    assert_eq!(bytes[VERSION_AT..][..2], MANIFEST_VERSION.to_le_bytes());
    let bundle = Bundle::parse(&bytes).expect("good");
    let found: Vec<_> = bundle.manifest().guests.iter().map(|guest| guest.smbios.clone()).collect();
    assert_eq!(found, tables);
    let text = |uuid: Option<Uuid>| uuid.map(|uuid| uuid.to_string());
    let parts = found.iter().map(|guest| (text(guest.uuid()), guest.serial(), guest.oem_strings().collect::<Vec<_>>()));
    let expected = [
        (Some(UUID.to_string()), None, vec![]),
        (None, None, vec![]),
        (None, Some("ds=nocloud;s=http://10.0.0.1/"), vec![]),
        (None, None, vec!["io.systemd.credential:a=b", "c"]),
    ];
    assert_eq!(parts.collect::<Vec<_>>(), expected);
}

#[test]
fn without_keys_of_smbios_a_manifest_stays_as_it_was() {
    let bytes = built(vec![SmbiosConfig::default(); 2]).expect("good");
    assert_eq!(bytes[VERSION_AT..][..2], OLDEST_MANIFEST_VERSION.to_le_bytes());
}

#[test]
fn impossible_tables_are_refused() {
    let refused = |tables| built(tables).expect_err("bad").problem.to_string();
    let long = "x".repeat(limits::OEM_STRING_BYTES + 1);
    let full = "x".repeat(limits::OEM_STRING_BYTES);
    for (tables, reason) in [
        (vec![smbios(None, Some("caf\u{e9}"), &[])], "bad serial number"),
        (vec![smbios(None, Some("a\nb"), &[])], "bad serial number"),
        (vec![smbios(None, Some(&"9".repeat(256)), &[])], "bad serial number"),
        (vec![smbios(None, None, &[""])], "bad OEM string"),
        (vec![smbios(None, None, &["\u{20ac}"])], "bad OEM string"),
        (vec![smbios(None, None, &[&long])], "bad OEM string"),
        (vec![smbios(None, None, &[&full, &full, "abc"])], "too many OEM strings"),
        (vec![smbios(None, None, &["a"; limits::OEM_STRINGS + 1])], "too many OEM strings"),
        (vec![SmbiosConfig("no UUID".to_string())], "bad UUID"),
        (vec![smbios(Some(UUID), None, &[]), smbios(Some(UUID), None, &[])], "has the UUID of another guest"),
    ] {
        let problem = refused(tables);
        assert!(problem.contains(reason), "{problem}");
    }
}

#[test]
fn a_digest_differs_where_tables_do() {
    let with = |smbios| GuestConfig { smbios, ..debian() }.digest();
    let all = [
        smbios(None, None, &[]),
        smbios(Some(UUID), None, &[]),
        smbios(None, Some("a"), &[]),
        smbios(None, None, &["a"]),
        smbios(None, None, &["a", "b"]),
        smbios(None, None, &["ab"]),
    ];
    let different: std::collections::BTreeSet<u64> = all.clone().into_iter().map(with).collect();
    assert_eq!(different.len(), all.len());
}

#[test]
fn a_derived_uuid_depends_on_the_name_alone() {
    let web = Uuid::derived("web");
    // The published test vector of FNV-1a over no byte is its offset.
    assert_eq!(Uuid::derived("").to_string(), "6c62272e-07bb-8142-a2b8-21756295c58d");
    assert_eq!(web, Uuid::derived("web"));
    assert_ne!(web, Uuid::derived("wea"));
    assert_eq!((web.bytes()[6] >> 4, web.bytes()[8] >> 6), (8, 2), "version and variant");
    assert_eq!(SmbiosConfig::default().uuid_of("web"), web);
    assert_eq!(smbios(Some(UUID), None, &[]).uuid_of("web").to_string(), UUID);
}

#[test]
fn what_is_no_uuid_is_refused() {
    for text in
        ["", "0f1e2d3c4b5a69788796a5b4c3d2e1f0", "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1fg", &UUID.replace('-', "_")]
    {
        assert_eq!(text.parse::<Uuid>(), Err(NotAUuid::Malformed), "{text}");
    }
    for digit in ["0", "f", "F"] {
        let text: String = UUID.chars().map(|c| if c == '-' { "-" } else { digit }).collect();
        assert_eq!(text.parse::<Uuid>(), Err(NotAUuid::Absent));
    }
    assert_eq!(UUID.to_uppercase().parse::<Uuid>().map(|uuid| uuid.to_string()).as_deref(), Ok(UUID));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_as_a_uuid(text in "[0-9a-f-]{34,38}|\\PC{0,40}") {
        if let Ok(uuid) = text.parse::<Uuid>() {
            prop_assert_eq!(uuid.to_string(), text.to_lowercase());
        }
    }
}

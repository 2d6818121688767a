// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of configurations that change, and of bundles that are written a piece at a time.

use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use proptest::collection::vec as many;
use proptest::prelude::*;

use super::{FILES, HOST, debian, sample};
use crate::*;

fn running() -> Manifest {
    Bundle::parse(&sample()).expect("the sample is good").manifest().clone()
}

fn addition(name: &str) -> Manifest {
    let guest = GuestConfig { name: name.to_string(), ..debian() };
    Manifest { host: HOST, guests: vec![guest], files: vec![] }
}

fn compose(manifest: &Manifest, piece: usize, files: &BTreeMap<&str, &[u8]>) -> Result<Vec<u8>, FileGone> {
    let mut composer = Composer::new(manifest);
    let mut into = vec![0xff; composer.bytes()];
    while !composer.step(&mut into, piece, |name| files.get(name).copied())? {}
    Ok(into)
}

#[test]
fn a_setting_changes_and_the_others_stay() {
    let settings = Settings { weight: Some(7), cap_percent: Some(25), ..Settings::default() };
    assert_eq!(settings.apply(&debian(), true), Ok(GuestConfig { weight: 7, cap_percent: 25, ..debian() }));
    let settings = Settings { vcpus: Some(3), autostart: Some(false), ..Settings::default() };
    assert_eq!(settings.apply(&debian(), false), Ok(GuestConfig { vcpus: 3, autostart: false, ..debian() }));
}

#[test]
fn memory_is_assured_or_seen_and_both_once_they_are_equal() {
    const MIB: u64 = 1 << 20;
    let sizes = |config: &GuestConfig| (config.assured_bytes.map(|bytes| bytes / MIB), config.memory_bytes / MIB);
    let mut config = GuestConfig { memory_bytes: 64 * MIB, assured_bytes: None, ..debian() };
    let memory = |mib: u64| Settings { memory_bytes: Some(mib * MIB), ..Settings::default() };
    let most = |mib: u64| Settings { memory_max_bytes: Some(mib * MIB), ..Settings::default() };
    for (settings, expected) in [
        (memory(32), (None, 32)),
        (most(128), (Some(32), 128)),
        (memory(64), (Some(64), 128)),
        (Settings { weight: Some(2), ..Settings::default() }, (Some(64), 128)),
        (most(96), (Some(64), 96)),
        (most(64), (None, 64)),
        (most(256), (Some(64), 256)),
        (memory(256), (None, 256)),
    ] {
        config = settings.apply(&config, false).expect("possible");
        assert_eq!(sizes(&config), expected, "{settings:?}");
    }
    let refused = most(128).apply(&config, false).expect_err("less than is assured").to_string();
    assert!(refused.contains("bad sizes of memory on demand"), "{refused}");
    let refused = most(512).apply(&config, true).expect_err("it runs").to_string();
    assert!(refused.contains("the size of memory changes only while"), "{refused}");
}

#[test]
fn settings_that_cannot_be_are_refused_with_the_reason() {
    assert_eq!(Settings::default().apply(&debian(), false), Err(Refused::Nothing));
    for (settings, reason) in [
        (Settings { vcpus: Some(2), ..Settings::default() }, "the number of vCPUs changes only while"),
        (Settings { memory_bytes: Some(1 << 20), ..Settings::default() }, "the size of memory changes only while"),
        (Settings { weight: Some(0), ..Settings::default() }, "\"debian\" has a bad weight: 1 to 1024"),
    ] {
        let refused = settings.apply(&debian(), true).expect_err("refused").to_string();
        assert!(refused.contains(reason), "{refused}");
    }
    let settings = Settings { memory_bytes: Some(3 << 19), ..Settings::default() };
    let refused = settings.apply(&debian(), false).expect_err("refused").to_string();
    assert!(refused.contains("a bad size of memory"), "{refused}");
}

#[test]
fn a_guest_is_added_once_and_with_files_that_are_there() {
    let mut manifest = running();
    assert_eq!(
        manifest.add(addition("debian")).map(drop).expect_err("twice").to_string(),
        "guest \"debian\" stands twice"
    );
    let mut other = addition("b");
    other.guests[0].kernel = "nowhere".to_string();
    assert_eq!(manifest.add(other), Err(Refused::NoFile("nowhere".to_string())));
    assert_eq!(manifest.add(Manifest::default()), Err(Refused::NotOne));
    assert_eq!(manifest, running(), "something was lost");
    assert_eq!(manifest.add(addition("b")).expect("added").name, "b");
    assert_eq!(manifest.guests.len(), 2);
}

#[test]
fn a_65th_guest_is_refused() {
    let mut manifest = running();
    for number in 1..limits::GUESTS {
        manifest.add(addition(&format!("g{number}"))).expect("there is room");
    }
    let before = manifest.clone();
    assert_eq!(manifest.add(addition("one-more")), Err(Refused::Problem(Problem::TooManyGuests)));
    assert_eq!(manifest, before);
}

#[test]
fn what_only_a_boot_can_give_is_refused_by_name() {
    let with = |change: fn(&mut GuestConfig)| {
        let mut addition = addition("b");
        change(&mut addition.guests[0]);
        running().add(addition).expect_err("refused").to_string()
    };
    assert!(with(|guest| guest.functions = vec![AssignedConfig::default()]).contains("PCI functions"));
    let control = GuestControl { role: ControlRole::Read, rights: ControlRights::default() };
    let vsock = VsockConfig { cid: 3, peers: vec![], control: Some(control) };
    let mut other = addition("b");
    other.guests[0].vsock = Some(vsock);
    assert!(running().add(other).expect_err("refused").to_string().contains("control of the host"));
}

fn sockets(cid: u32, peers: &[u32]) -> Option<VsockConfig> {
    Some(VsockConfig { cid, peers: peers.to_vec(), control: None })
}

/// A host with two networks, and a guest that serves disks.
fn with_networks() -> Manifest {
    let mut manifest = running();
    let network = |name: &str| NetworkConfig { name: name.to_string(), mtu: 1500 };
    manifest.host.networks = vec![network("lan"), network("dmz")];
    manifest.guests[0].vsock = sockets(9, &[]);
    manifest.guests[0].nics = vec![NicConfig::with_mac([2, 0, 0, 0, 0, 1])];
    manifest
}

/// A guest with a device on a network, sockets, and a disk behind a server.
fn with_devices(network: &str, server: u32) -> Manifest {
    let mut addition = addition("b");
    addition.host.networks = vec![NetworkConfig { name: network.to_string(), mtu: 1500 }];
    let guest = &mut addition.guests[0];
    guest.nics = vec![NicConfig::with_mac([2, 0, 0, 0, 0, 1])];
    guest.vsock = sockets(3, &[server]);
    guest.disks = vec![DiskConfig { cid: server, port: 10_809, timeout_s: 60, ..DiskConfig::default() }];
    addition
}

#[test]
fn a_guest_is_added_with_its_devices_on_networks_by_name() {
    let mut manifest = with_networks();
    let sent = with_devices("dmz", 9).to_content();
    let added = manifest.add(Manifest::addition_from_content(&sent).expect("whole")).expect("added");
    assert_eq!(added.nics, [NicConfig { network: 1, ..NicConfig::with_mac([2, 0, 0, 0, 0, 1]) }]);
    assert_eq!((added.vsock, added.disks.len()), (sockets(3, &[9]), 1));
    let read = Manifest::from_content(&manifest.to_content());
    assert_eq!(read, Ok(manifest.clone()));
    let before = manifest.clone();
    assert!(manifest.remove("debian").expect_err("needed").to_string().contains("\"b\" has a peer"));
    assert_eq!(manifest, before);
}

#[test]
fn devices_that_the_host_cannot_give_are_refused_and_nothing_is_lost() {
    let mut manifest = with_networks();
    let before = manifest.clone();
    let mut refused = |addition: Manifest| manifest.add(addition).expect_err("refused").to_string();
    assert_eq!(refused(with_devices("wan", 9)), "the host has no network \"wan\"");
    let mut nameless = with_devices("dmz", 9);
    nameless.host.networks.clear();
    assert_eq!(refused(nameless), "the host has no network \"\"");
    assert!(refused(with_devices("lan", 9)).contains("has the MAC address of another network device"));
    assert!(refused(with_devices("dmz", 8)).contains("has a peer that is no other guest with sockets"));
    let mut twice = with_devices("dmz", 9);
    twice.guests[0].vsock = sockets(9, &[]);
    assert!(refused(twice).contains("has the context identifier of another guest"));
    let mut serverless = with_devices("dmz", 9);
    serverless.guests[0].disks[0].cid = 8;
    assert!(refused(serverless).contains("has a disk whose server is no other guest with sockets"));
    assert_eq!(manifest, before);
}

#[test]
fn a_damaged_description_is_refused() {
    let mut content = addition("b").to_content();
    let last = content.len() - 1;
    content[last] ^= 1;
    assert!(matches!(Manifest::addition_from_content(&content), Err(Problem::BadChecksum { .. })));
    let mut weightless = addition("b");
    weightless.guests[0].weight = 0;
    let refused = Manifest::addition_from_content(&weightless.to_content()).expect_err("refused").to_string();
    assert!(refused.contains("a bad weight"), "{refused}");
}

#[test]
fn a_guest_that_another_needs_stays() {
    let mut manifest = running();
    manifest.guests[0].vsock = sockets(3, &[4]);
    manifest.guests.push(GuestConfig { name: "b".to_string(), vsock: sockets(4, &[3]), ..debian() });
    let before = manifest.clone();
    let refused = manifest.remove("b").expect_err("refused").to_string();
    assert!(refused.contains("\"debian\" has a peer"), "{refused}");
    assert_eq!(manifest, before);
}

#[test]
fn a_composed_bundle_is_the_one_that_is_built_at_once() {
    let files = FILES.into_iter().collect();
    for piece in [1, 3, 110, 4096, usize::MAX] {
        assert_eq!(compose(&running(), piece, &files), Ok(sample()), "pieces of {piece} bytes");
    }
}

#[test]
fn a_guest_that_is_added_needs_no_newer_version_than_one_of_the_boot() {
    // So that the image of release 0.1.0 goes on with it.
    let mut manifest = running();
    manifest.add(addition("b")).expect("added");
    assert_eq!(manifest.to_content()[4..6], OLDEST_MANIFEST_VERSION.to_le_bytes());
}

#[test]
fn files_that_no_guest_needs_are_left_out() {
    let mut manifest = running();
    manifest.files.push(FileRecord { name: "spare".to_string(), bytes: 7, crc32: 0 });
    assert_eq!(manifest.clone().with_needed_files(), running());
    manifest.remove("debian").expect("removed");
    manifest.host.image = Some("spare".to_string());
    let left: Vec<String> = manifest.with_needed_files().files.into_iter().map(|file| file.name).collect();
    assert_eq!(left, ["spare"]);
}

#[test]
fn a_file_that_is_gone_or_another_ends_the_composition() {
    let gone = Err(FileGone("initrd.img".to_string()));
    let mut files: BTreeMap<&str, &[u8]> = FILES.into_iter().collect();
    files.insert("initrd.img", &[7; 300]);
    assert_eq!(compose(&running(), 64, &files), gone);
    files.remove("initrd.img");
    assert_eq!(compose(&running(), 64, &files), gone);
}

#[test]
fn each_action_has_a_word() {
    for (action, word) in OnPanic::WORDS {
        assert_eq!((OnPanic::from_word(word), action.word()), (Some(action), word));
    }
    assert_eq!(OnPanic::from_word("dance"), None);
}

/// An operator's command.
#[derive(Clone, Debug)]
enum Act {
    Create(u8),
    Delete(u8),
    Set(u8, u32),
}

fn act() -> impl Strategy<Value = Act> {
    let name = 0_u8..8;
    prop_oneof![
        name.clone().prop_map(Act::Create),
        name.clone().prop_map(Act::Delete),
        (name, 0_u32..1100).prop_map(|(name, weight)| Act::Set(name, weight)),
    ]
}

proptest! {
    /// After any sequence the guests are those that a map would hold, and the next image reads the same.
    #[test]
    fn any_sequence_of_changes_leaves_a_configuration_that_the_next_image_reads(acts in many(act(), 0..40)) {
        let (mut manifest, mut expected) = (running(), BTreeMap::from([("debian".to_string(), 100)]));
        for act in acts {
            match act {
                Act::Create(name) => {
                    let name = format!("g{name}");
                    prop_assert_eq!(manifest.add(addition(&name)).is_ok(), !expected.contains_key(&name));
                    expected.entry(name).or_insert(100);
                }
                Act::Delete(name) => {
                    let name = format!("g{name}");
                    manifest.remove(&name).expect("no guest needs it");
                    expected.remove(&name);
                }
                Act::Set(name, weight) => {
                    let name = format!("g{name}");
                    let Some(guest) = manifest.guests.iter_mut().find(|guest| guest.name == name) else { continue };
                    let settings = Settings { weight: Some(weight), ..Settings::default() };
                    if let Ok(changed) = settings.apply(guest, true) {
                        *guest = changed;
                        expected.insert(name, weight);
                    }
                }
            }
        }
        let found: BTreeMap<String, u32> =
            manifest.guests.iter().map(|guest| (guest.name.clone(), guest.weight)).collect();
        prop_assert_eq!(&found, &expected);
        let composed = compose(&manifest, 100, &FILES.into_iter().collect()).expect("its files are there");
        let read = Bundle::parse(&composed).expect("the next image reads it");
        prop_assert_eq!(read.manifest(), &manifest);
        for (name, content) in FILES {
            prop_assert_eq!(read.verify(name).expect("whole"), content);
        }
        prop_assert_eq!(Manifest::from_content(&manifest.to_content()), Ok(manifest));
    }
}

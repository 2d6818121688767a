// SPDX-License-Identifier: MIT OR Apache-2.0
//! Good bundles, and bundles that ask for what cannot be.

use std::io::Read as _;
use std::string::ToString;
use std::vec;
use std::vec::Vec;

use super::*;

#[test]
fn what_was_written_is_read() {
    let bytes = sample();
    let bundle = Bundle::parse(&bytes).expect("good");
    assert_eq!(bundle.manifest().host, HOST);
    assert_eq!(bundle.manifest().guests, [debian()]);
    for (name, content) in FILES {
        assert_eq!(bundle.file(name), Ok(content));
        assert_eq!(bundle.verify(name), Ok(content));
    }
}

#[test]
fn a_guest_gets_its_files() {
    let bytes = sample();
    let files = Bundle::parse(&bytes).expect("good").guest_files(&debian()).expect("all there");
    assert_eq!(files, GuestFiles { kernel: b"kernel", initrd: Some(&[7; 301]), modules: vec![("a.ko", b"")] });
}

#[test]
fn a_guest_gets_its_verified_files_only_whole() {
    let mut bytes = sample();
    assert!(Bundle::parse(&bytes).expect("good").verified_guest_files(&debian()).is_ok());
    let at = bytes.windows(301).position(|window| window == [7; 301]).expect("the initrd");
    bytes[at + 300] ^= 1;
    let bundle = Bundle::parse(&bytes).expect("files are not parsed");
    assert!(bundle.guest_files(&debian()).is_ok());
    let error = bundle.verified_guest_files(&debian()).expect_err("damaged");
    assert!(matches!(error.problem, Problem::BadChecksum { .. }), "{error}");
}

#[test]
fn a_guest_without_its_file_keeps_no_other_from_running() {
    let lost = GuestConfig { name: "lost".to_string(), kernel: "vmlinux".to_string(), ..debian() };
    let bytes = write::build(HOST, vec![lost.clone(), debian()], &FILES).expect("good");
    let bundle = Bundle::parse(&bytes).expect("good");
    let error = bundle.guest_files(&lost).expect_err("no kernel");
    assert_eq!((error.entry.as_str(), &error.problem), ("vmlinux", &Problem::Missing));
    assert!(bundle.guest_files(&debian()).is_ok());
}

#[test]
fn other_cpio_readers_read_it() {
    let bytes = sample();
    let mut rest = &bytes[..];
    let mut found = Vec::new();
    loop {
        let mut entry = cpio::NewcReader::new(rest).expect("an entry");
        if entry.entry().is_trailer() {
            break;
        }
        let (name, mut content) = (entry.entry().name().to_string(), Vec::new());
        entry.read_to_end(&mut content).expect("in memory");
        found.push((name, content));
        rest = entry.finish().expect("in memory");
    }
    let files: Vec<_> = FILES.map(|(name, content)| (name.to_string(), content.to_vec())).to_vec();
    assert_eq!(found[0].0, MANIFEST_NAME);
    assert_eq!(found[1..], files);
}

#[test]
fn whatever_follows_the_trailer_is_ignored() {
    let bytes = [sample(), vec![0xee; 1000]].concat();
    assert!(Bundle::parse(&bytes).is_ok());
}

#[test]
fn an_impossible_guest_is_named() {
    type Change = fn(&mut GuestConfig);
    let cases: [(Change, &str); 12] = [
        (|guest| guest.name = "".to_string(), "bad name"),
        (|guest| guest.name = "a b".to_string(), "bad name"),
        (|guest| guest.name = "x".repeat(33), "bad name"),
        (|guest| guest.cmdline = "x".repeat(4096), "bad command line"),
        (|guest| guest.modules = vec!["m".to_string(); 17], "too many modules"),
        (|guest| guest.vcpus = 0, "bad number of CPUs"),
        (|guest| guest.weight = 0, "bad weight"),
        (|guest| guest.cap_percent = 51_201, "bad cap"),
        (|guest| guest.functions = with_functions(&[("01:00.0", false); 17]).functions, "too many PCI functions"),
        (|guest| guest.functions = with_functions(&[(&"0".repeat(65), false)]).functions, "selector is too long"),
        (|guest| guest.memory_bytes = 0, "bad size of memory"),
        (|guest| guest.memory_bytes += 4096, "bad size of memory"),
    ];
    for (change, expected) in cases {
        let mut guest = debian();
        change(&mut guest);
        let error = Bundle::parse(&archive(&manifest(vec![guest]), &[])).expect_err("bad").to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_name_stands_once() {
    let error = Bundle::parse(&archive(&manifest(vec![debian(), debian()]), &[])).expect_err("two of them");
    assert_eq!(
        error.to_string(),
        "bundle entry \"manifest\" at byte 0: guest \"debian\" stands twice; correct it in host.toml and make the \
         bundle again"
    );
    let error = write::build(HOST, vec![], &[("a", b"1"), ("a", b"1")]).expect_err("two of them");
    assert_eq!((error.entry.as_str(), error.problem), ("a", Problem::Duplicate));
}

#[test]
fn too_many_guests_are_refused() {
    let guests = (0..65).map(|index| GuestConfig { name: index.to_string(), ..debian() }).collect();
    assert_eq!(problem(&archive(&manifest(guests), &[])), Problem::TooManyGuests);
}

/// Offset of the version in a sample's manifest: behind the header, the padded name and the magic number.
pub(super) const VERSION_AT: usize = 110 + 10 + 4;

#[test]
fn a_manifest_with_no_newer_entry_can_be_read_by_release_0_1_0() {
    let bytes = sample();
    assert_eq!(bytes[VERSION_AT..][..2], OLDEST_MANIFEST_VERSION.to_le_bytes());
}

#[test]
fn the_policy_of_downgrades_is_read() {
    for allow_downgrade in [Some(false), Some(true)] {
        let host = HostConfig { allow_downgrade, ..HOST };
        let bytes = write::build(host.clone(), vec![debian()], &FILES).expect("good");
        assert_eq!(bytes[VERSION_AT..][..2], MANIFEST_VERSION.to_le_bytes());
        let bundle = Bundle::parse(&bytes).expect("good");
        assert_eq!((&bundle.manifest().host, &bundle.manifest().guests[..]), (&host, &[debian()][..]));
    }
}

/// Returns the sample's guest with PCI functions of the host.
fn with_functions(selectors: &[(&str, bool)]) -> GuestConfig {
    let function = |&(selector, without_reset): &(&str, bool)| AssignedConfig {
        selector: selector.to_string(),
        without_reset,
        gsi: None,
        virtual_functions: 0,
    };
    GuestConfig { functions: selectors.iter().map(function).collect(), ..debian() }
}

#[test]
fn functions_of_the_host_are_read_guest_by_guest() {
    let first = GuestConfig { name: "first".to_string(), ..debian() };
    let second = with_functions(&[("0000:01:00.0", false), ("8086:10ca#2", true)]);
    let guests = vec![first, second];
    let bytes = write::build(HOST, guests.clone(), &FILES).expect("good");
    assert_eq!(bytes[VERSION_AT..][..2], MANIFEST_VERSION.to_le_bytes());
    assert_eq!(Bundle::parse(&bytes).expect("good").manifest().guests, guests);
}

/// Returns the sample's guest with virtio devices.
fn with_virtio(rng: bool, console: bool) -> GuestConfig {
    GuestConfig { virtio: VirtioDevices { rng, console }, ..debian() }
}

#[test]
fn virtio_devices_are_read_guest_by_guest() {
    let first = GuestConfig { name: "first".to_string(), ..with_functions(&[("01:00.0", false)]) };
    for second in [with_virtio(true, false), with_virtio(false, true), with_virtio(true, true)] {
        let guests = vec![first.clone(), second];
        let bytes = write::build(HOST, guests.clone(), &FILES).expect("good");
        assert_eq!(bytes[VERSION_AT..][..2], MANIFEST_VERSION.to_le_bytes());
        assert_eq!(Bundle::parse(&bytes).expect("good").manifest().guests, guests);
    }
}

/// Returns the sample's guest with a function and the global system interrupt of its line.
fn with_line(gsi: Option<u32>) -> GuestConfig {
    let mut guest = with_functions(&[("01:00.0", false), ("02:00.0", true)]);
    guest.functions[1].gsi = gsi;
    guest
}

#[test]
fn lines_are_read_function_by_function() {
    let first = GuestConfig { name: "first".to_string(), ..with_virtio(true, false) };
    for gsi in [0, 16, u32::MAX] {
        let guests = vec![first.clone(), with_line(Some(gsi))];
        let bytes = write::build(HOST, guests.clone(), &FILES).expect("good");
        assert_eq!(bytes[VERSION_AT..][..2], MANIFEST_VERSION.to_le_bytes());
        assert_eq!(Bundle::parse(&bytes).expect("good").manifest().guests, guests);
    }
    assert_ne!(with_line(Some(16)).digest(), with_line(None).digest());
    assert_ne!(with_line(Some(16)).digest(), with_line(Some(17)).digest());
}

#[test]
fn virtual_functions_are_read_function_by_function() {
    let mut second = with_functions(&[("01:00.0", false), ("02:00.0", false)]);
    second.functions[1].virtual_functions = 4;
    let first = GuestConfig { name: "first".to_string(), ..with_functions(&[("03:00.0", true)]) };
    let mut guests = vec![first, second];
    let bytes = write::build(HOST, guests.clone(), &FILES).expect("good");
    assert_eq!(bytes[VERSION_AT..][..2], MANIFEST_VERSION.to_le_bytes());
    assert_eq!(Bundle::parse(&bytes).expect("good").manifest().guests, guests);
    let digest = guests[1].digest();
    guests[1].functions[1].virtual_functions = 8;
    assert_ne!(guests[1].digest(), digest);
    assert!(write::build(HOST, guests, &FILES).is_err(), "more than a device has functions");
}

#[test]
fn virtual_functions_are_approved_of_the_function_that_is_named_with_them() {
    let mut guest = with_functions(&[("01:00.0", false), ("8086:10c9", false)]);
    guest.functions[1].virtual_functions = 4;
    assert_eq!(guest.approved_virtual_functions(|selector| selector == "8086:10c9"), 4);
    assert_eq!(guest.approved_virtual_functions(|selector| selector == "01:00.0"), 0);
    assert_eq!(guest.approved_virtual_functions(|_| false), 0, "one that the operator has assigned");
}

#[test]
fn a_digest_differs_where_functions_do() {
    /// The digest of the sample's guest, as release 0.1.0 computes it.
    const RELEASE_0_1_0: u64 = 0x0f54_37af_35c6_c6a8;
    assert_eq!(debian().digest(), RELEASE_0_1_0);
    let guests = [
        debian(),
        with_functions(&[("01:00.0", false)]),
        with_functions(&[("01:00.0", true)]),
        with_functions(&[("02:00.0", false)]),
        with_virtio(true, false),
        with_virtio(false, true),
        with_virtio(true, true),
        with_functions(&[("01:00.0", false), ("02:00.0", false)]),
    ];
    let digests: std::collections::BTreeSet<u64> = guests.iter().map(GuestConfig::digest).collect();
    assert_eq!(digests.len(), guests.len());
}

#[test]
fn a_file_that_is_no_bundle_is_refused_by_its_first_bytes() {
    let good = sample();
    for arrived in 0..good.len() {
        assert_eq!(Bundle::check_head(&good[..arrived]), Ok(()), "{arrived} bytes");
    }
    let problem = |head: &[u8]| Bundle::check_head(head).expect_err("no bundle").problem;
    assert_eq!(problem(b"\x7fELF"), Problem::NoArchive);
    assert_eq!(problem(&archive_of_another()), Problem::NoManifest);
}

/// Returns a cpio archive that begins with another file, as an initramfs does.
fn archive_of_another() -> Vec<u8> {
    let mut bytes = Vec::new();
    write::append(&mut bytes, "init", b"#!/bin/sh");
    bytes
}

#[test]
fn a_seal_behind_the_archive_is_passed_over() {
    let sealed = [&sample()[..], b"BatnBndl"].concat();
    assert_eq!(Bundle::parse(&sealed).expect("good").manifest().guests, [debian()]);
}

/// Changes where the encoding of a manifest does: then its version is to be raised, and the one before to be read.
#[test]
fn a_version_has_one_encoding() {
    const CRC32: u32 = 0xf86e_3b5f;
    let mut guest = with_line(Some(16));
    guest.functions[0].virtual_functions = 4;
    guest.virtio = VirtioDevices { rng: true, console: false };
    guest.nics = vec![NicConfig::with_mac([2, 0, 0, 0, 0, 1])];
    let rights = ControlRights { dump: true, ..ControlRights::default() };
    let control = Some(GuestControl { role: ControlRole::Operate, rights });
    guest.vsock = Some(VsockConfig { cid: 3, peers: vec![4], control });
    guest.cpu = CpuModel::V3;
    guest.smbios = SmbiosConfig::new(None, Some("serial"), ["oem"]);
    let limits = DiskLimits { requests_per_s: Some(9), bytes_per_s: None };
    guest.disks = vec![DiskConfig { cid: 4, export: "root".to_string(), limits, ..DiskConfig::default() }];
    guest.is_paravirtual = true;
    guest.assured_bytes = Some(2 << 20);
    let host = HostConfig {
        image: Some("baton.elf".to_string()),
        trusted_keys: vec![[7; 32]],
        allow_downgrade: Some(false),
        networks: vec![NetworkConfig { name: "lan".to_string(), mtu: 1500 }],
        control_keys: vec![ControlKeyConfig { name: "ops".to_string(), key: [9; 32], role: ControlRole::Update }],
        is_serial_open: true,
        ..HOST
    };
    let content = Manifest { host, guests: vec![guest], files: vec![] }.to_content();
    assert_eq!(content[4..6], MANIFEST_VERSION.to_le_bytes());
    assert_eq!(content.last_chunk(), Some(&CRC32.to_le_bytes()));
}

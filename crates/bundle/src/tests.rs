// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of bundles.

mod change;
mod checksum;
mod control;
mod cpu;
mod damage;
mod disks;
mod networks;
mod reading;
mod smbios;
mod sockets;

use std::string::ToString;
use std::vec;
use std::vec::Vec;

use crate::*;

/// Returns a guest that uses three of the sample's files.
fn debian() -> GuestConfig {
    GuestConfig {
        name: "debian".to_string(),
        kernel: "vmlinuz".to_string(),
        initrd: Some("initrd.img".to_string()),
        modules: vec!["a.ko".to_string()],
        cmdline: "console=ttyS0".to_string(),
        vcpus: 2,
        memory_bytes: 512 << 20,
        devices: Devices::default(),
        weight: 100,
        on_panic: OnPanic::default(),
        hung_s: 10,
        pmu: Pmu::Off,
        pmu_events: None,
        autostart: true,
        functions: vec![],
        virtio: VirtioDevices::default(),
        nics: vec![],
        vsock: None,
        cpu: CpuModel::Host,
        smbios: SmbiosConfig::default(),
        disks: vec![],
        is_paravirtual: false,
        assured_bytes: None,
        cap_percent: 0,
    }
}

const HOST: HostConfig = HostConfig {
    when_done: WhenDone::DebugExit,
    image: None,
    trusted_keys: vec![],
    allow_downgrade: None,
    networks: vec![],
    control_keys: vec![],
    is_serial_open: false,
};
const FILES: [(&str, &[u8]); 3] = [("vmlinuz", b"kernel"), ("initrd.img", &[7; 301]), ("a.ko", b"")];

fn sample() -> Vec<u8> {
    write::build(HOST, vec![debian()], &FILES).expect("the sample is good")
}

/// Returns an archive around any manifest, as no careful writer would make it.
fn archive(manifest: &[u8], files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = Vec::new();
    write::append(&mut archive, MANIFEST_NAME, manifest);
    for (name, content) in files {
        write::append(&mut archive, name, content);
    }
    write::append(&mut archive, "TRAILER!!!", &[]);
    archive
}

/// Returns a manifest's content with `guests` and no files.
fn manifest(guests: Vec<GuestConfig>) -> Vec<u8> {
    write::encode_manifest(&Manifest { host: HOST, guests, files: vec![] })
}

fn problem(bytes: &[u8]) -> Problem {
    Bundle::parse(bytes).expect_err("the bundle is bad").problem
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Helpers that several tests of this crate share, and those of other crates (feature `testing`).

use handover::image::{BUILD_TEXT_BYTES, IMAGE_BASE, LINKED_AT, NOTE_TYPE, Note};
use wire::{ApicMode, DiskInfo, DiskTransfers, HostInfo, Virtualization, VmInfo, VmState};
use zerocopy::IntoBytes as _;

const CODE_AT: usize = 0x1000;
const NOTE_AT: usize = 0x2000;

/// A host of security version 5 that writes hand-over versions 3 and 4 and trusts no key.
pub fn host_info() -> HostInfo {
    HostInfo {
        version: "0.1.0".to_owned(),
        image_bytes: 512 << 10,
        cpus: 2,
        memory_total_bytes: 2 << 30,
        memory_free_bytes: 1 << 30,
        host_overhead_bytes: 9 << 20,
        uptime_ns: 1_250_000_000,
        virtualization: Virtualization::Svm,
        features: vec![],
        apic_mode: ApicMode::XApic,
        tsc_hz: 1_000_000_000,
        generation: 3,
        unclaimed_nmis: 0,
        unexpected_interrupts: 0,
        last_unexpected_vector: None,
        build: "0123456789ab".to_owned(),
        security_version: 5,
        permits_downgrade: true,
        oldest_handover: 3,
        newest_handover: 4,
        trusted_keys: vec![],
        signer: None,
    }
}

/// A guest with one vCPU.
pub fn vm(name: &str, state: VmState) -> VmInfo {
    VmInfo {
        name: name.to_owned(),
        state,
        vcpus: 1,
        memory_bytes: 1 << 20,
        resident_bytes: None,
        cpus: vec![0],
        since_ns: 0,
        throttled_since_ns: None,
        exits_total: 0,
        exits: Vec::new(),
        reason: None,
        console: wire::ConsoleOutput::default(),
    }
}

/// A disk that has worked, and has failed.
pub fn disk() -> DiskInfo {
    DiskInfo {
        guest: "web".to_owned(),
        number: 1,
        server: "storage".to_owned(),
        export: "web-root".to_owned(),
        serial: String::new(),
        is_read_only: false,
        is_write_back: false,
        bytes: Some(1 << 20),
        is_connected: true,
        in_flight: 5,
        reads: DiskTransfers { requests: 6, bytes: 3072 },
        writes: DiskTransfers { requests: 7, bytes: 3584 },
        others: 8,
        failures: 9,
        connections: 10,
    }
}

/// A file that passes for an image of Baton with this security version, reading these hand-over versions.
pub fn test_image(security_version: u32, oldest: u32, newest: u32) -> Vec<u8> {
    let entry = IMAGE_BASE + LINKED_AT;
    let note = Note { entry: entry.into(), oldest: oldest.into(), newest: newest.into(), version: [0; 24] };
    let content =
        [note.as_bytes(), &[0; BUILD_TEXT_BYTES], &1u32.to_le_bytes(), &security_version.to_le_bytes()].concat();
    let head = [6, content.len() as u32, NOTE_TYPE].map(u32::to_le_bytes).concat();
    let note = [&head[..], b"Baton\0\0\0", &content].concat();
    let mut bytes = vec![0; NOTE_AT];
    let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
    put(0, &[0x7f, b'E', b'L', b'F', 2, 1, 1]);
    // Type, machine and version; where the program headers are; sizes and number of headers.
    put(16, &[2, 0, 62, 0, 1]);
    put(32, &64u64.to_le_bytes());
    put(52, &[64, 0, 56, 0, 2]);
    let load = [CODE_AT as u64, entry, LINKED_AT, 0x1000, 0x1000, 4096];
    let described = [NOTE_AT as u64, LINKED_AT, LINKED_AT, note.len() as u64, note.len() as u64, 4];
    for (at, kind, flags, numbers) in [(64, 1u32, 5u32, load), (120, 4, 4, described)] {
        put(at, &kind.to_le_bytes());
        put(at + 4, &flags.to_le_bytes());
        numbers.iter().enumerate().for_each(|(place, number)| put(at + 8 + place * 8, &number.to_le_bytes()));
    }
    bytes.extend(note);
    bytes
}

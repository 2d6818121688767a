// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages fit frames, and lose nothing.

use std::string::ToString;
use std::vec::Vec;

use super::{decoded, encoded, samples};
use crate::*;

#[test]
fn any_number_of_machines_comes_through_in_pages() {
    let all: Vec<VmInfo> = (0..500).map(samples::vm_info).collect();
    let mut received = Vec::new();
    while received.len() < all.len() {
        let vms = page::fill(all[received.len()..].iter().cloned(), usize::MAX);
        assert!(!vms.is_empty());
        let frame =
            Frame::Response(Response { id: u32::MAX, result: Ok(ReplyBody::Vms { vms, next_index: Some(u32::MAX) }) });
        assert_eq!(decoded(&encoded(&frame)).len(), 1);
        let Frame::Response(Response { result: Ok(ReplyBody::Vms { vms, .. }), .. }) = frame else { unreachable!() };
        received.extend(vms);
    }
    assert_eq!(received, all);
}

#[test]
fn the_longest_piece_of_a_file_fits() {
    for byte in [0, 0xff] {
        let packed = std::vec![byte; crate::MAX_PACKED_BYTES];
        let body = RequestBody::UploadPacked { offset: u64::MAX, bytes: u32::MAX, packed, begins: true };
        encoded(&Frame::Request(Request { id: u32::MAX, body }));
        let body = RequestBody::UploadData { offset: u64::MAX, bytes: std::vec![byte; MAX_UPLOAD_BYTES] };
        encoded(&Frame::Request(Request { id: u32::MAX, body }));
    }
}

#[test]
fn the_longest_page_of_captured_frames_fits() {
    for content in [0, 60, 3028] {
        let sender = "n".repeat(MAX_NAME_BYTES);
        let count = MAX_CAPTURED_BYTES / (CAPTURED_HEAD_BYTES + sender.len() + content);
        let content = std::vec![0xff; content];
        let frame = CapturedFrame { time_ns: u64::MAX, sender, bytes: u32::MAX, content };
        let page = CapturePage { seen: u64::MAX, lost: u64::MAX, frames: std::vec![frame; count.max(1)] };
        encoded(&Frame::Response(Response { id: u32::MAX, result: Ok(ReplyBody::Capture(page)) }));
    }
}

#[test]
fn the_longest_records_fit() {
    let record = LogRecord {
        sequence: u64::MAX,
        time_ns: u64::MAX,
        cpu: u32::MAX,
        level: Level::Trace,
        module: "m".repeat(MAX_REASON_BYTES).into(),
        text: "t".repeat(MAX_TEXT_BYTES).into(),
    };
    encoded(&Frame::Stream(Stream::Log(record.clone())));
    let records = page::fill(core::iter::repeat_n(record, 10), 10);
    assert_eq!(records.len(), 3);
    encoded(&Frame::Response(Response {
        id: u32::MAX,
        result: Ok(ReplyBody::Log { records, next_sequence: u64::MAX }),
    }));
}

#[test]
fn the_largest_machine_fits() {
    let vm = VmInfo {
        name: "n".repeat(MAX_NAME_BYTES),
        cpus: (0..512).collect(),
        reason: Some("r".repeat(MAX_REASON_BYTES)),
        ..samples::vm_info(0)
    };
    assert_eq!(page::fill([vm], 1).len(), 1);
}

#[test]
fn the_fullest_cpu_fits() {
    let vcpus = (0..32).map(|vcpu| CpuVcpu { vm: "n".repeat(MAX_NAME_BYTES), vcpu: u32::MAX - vcpu }).collect();
    let cpu = CpuInfo {
        index: u32::MAX,
        apic_id: u32::MAX,
        state: CpuState::Failed,
        reason: Some("r".repeat(MAX_REASON_BYTES)),
        busy_permille: Some(1000),
        vcpus,
    };
    assert_eq!(page::fill([cpu], 1).len(), 1);
}

#[test]
fn any_number_of_the_fullest_functions_comes_through_in_pages() {
    let cost = PciCost { accesses: u32::MAX, ticks: u64::MAX };
    let range = PciRange { is_ports: false, address: u64::MAX };
    let function = PciFunction {
        place: (u16::MAX, 255, 31, 7),
        vendor: u16::MAX,
        device: u16::MAX,
        class: (255, 255, 255),
        revision: 255,
        bus_behind: Some(255),
        ranges: [range; 6].to_vec(),
        capabilities: [255; 48].to_vec(),
        problems: (0..4).map(|_| "p".repeat(80)).collect(),
        cost,
        owner: Some("n".repeat(MAX_NAME_BYTES)),
        group: Some(u32::MAX),
        virtual_functions: Some(PciVirtualFunctions { total: u16::MAX, places: None, problem: Some("p".repeat(100)) }),
    };
    let functions = page::fill(core::iter::repeat_n(function, 100), usize::MAX);
    assert_eq!(functions.len(), 6);
    let policy = PciPolicy::Lazy;
    let survey = PciSurvey { policy, is_complete: false, functions: u32::MAX, before_guests: Some(cost), total: cost };
    encoded(&Frame::Response(Response {
        id: u32::MAX,
        result: Ok(ReplyBody::PciFunctions { survey, functions, next_index: Some(u32::MAX) }),
    }));
}

#[test]
fn the_longest_report_of_an_update_fits() {
    // A blackout lasts ten seconds at most.
    let ns = 30_000_000_000;
    let [left_ns, saved_ns, gone_ns, arrived_ns, restored_ns, committed_ns, entered_ns] = [ns; 7];
    let steps =
        UpdateSteps { index: 1023, left_ns, saved_ns, gone_ns, arrived_ns, restored_ns, committed_ns, entered_ns };
    let [old_version, new_version, old_build, new_build] = [(); 4].map(|()| "v".repeat(64));
    let report = UpdateReport {
        generation: u64::MAX,
        old_version,
        new_version,
        preparation_ns: u64::MAX,
        preparation_busy_ns: u64::MAX,
        slices: u32::MAX,
        memory_bytes: u64::MAX,
        blackout_ns: u64::MAX,
        cpus: std::vec![steps; MAX_UPDATE_STEPS],
        old_build,
        new_build,
        signer: Some("f".repeat(16)),
        ..UpdateReport::default()
    };
    encoded(&Frame::Response(Response { id: u32::MAX, result: Ok(ReplyBody::Updated(report)) }));
}

#[test]
fn all_vulnerabilities_fit_into_one_answer() {
    let longest = crate::Vulnerability { name: "n".repeat(26), status: "s".repeat(96) };
    let all = core::iter::repeat_n(longest, 24).collect();
    encoded(&Frame::Response(Response { id: u32::MAX, result: Ok(ReplyBody::Vulnerabilities(all)) }));
}

#[test]
fn a_page_of_a_profile_fits_whatever_its_samples_are() {
    let samples = [u32::MAX; MAX_PROFILE_WORDS].to_vec();
    let page =
        ProfilePage { build: [255; 20], code: u64::MAX, period_us: u32::MAX, asked: u64::MAX, lost: u64::MAX, samples };
    encoded(&Frame::Response(Response { id: u32::MAX, result: Ok(ReplyBody::Profile(page)) }));
}

#[test]
fn a_limit_is_kept_and_a_monster_left_out() {
    assert_eq!(page::fill([1, 2, 3], 2), [1, 2]);
    assert_eq!(page::fill(["a".repeat(5000), "b".to_string()], 2), ["b"]);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! One message of every kind.

use std::borrow::Cow;
use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, vec};

use crate::*;

pub fn all() -> Vec<Frame<'static>> {
    let requests = requests().into_iter().enumerate();
    let requests = requests.map(|(index, body)| Frame::Request(Request { id: 1000 + index as u32, body }));
    let results = results().into_iter().enumerate();
    let responses = results.map(|(index, result)| Frame::Response(Response { id: index as u32, result }));
    requests.chain(responses).chain(streams().into_iter().map(Frame::Stream)).collect()
}

fn debian() -> String {
    "debian".to_string()
}

fn net_port() -> NetPort {
    let frames = |frames| NetFrames { frames, bytes: frames * 60 };
    let [short, long, source, vlan, reserved] = [1, 2, 3, 4, 5];
    let [unreachable, malformed, full, down, offload] = [6, 7, 8, 9, 10];
    NetPort {
        network: "lan".to_string(),
        mtu: 1500,
        guest: debian(),
        mac: [0x52, 0x54, 0, 0, 0, 1],
        is_up: true,
        vlans: vec![0, 4094],
        is_tagged: true,
        is_isolated: false,
        is_trusted: true,
        stations: 7,
        sent: frames(1 << 40),
        received: frames(300),
        drops: NetDrops { short, long, source, vlan, reserved, unreachable, malformed, full, down, offload },
    }
}

fn capture_page() -> CapturePage {
    let frame = CapturedFrame { time_ns: 1 << 33, sender: debian(), bytes: 1514, content: vec![0xff; 6] };
    CapturePage { seen: 70_000, lost: 3, frames: vec![frame] }
}

fn disk() -> DiskInfo {
    let transfers = |requests| DiskTransfers { requests, bytes: requests << 12 };
    DiskInfo {
        guest: debian(),
        number: 2,
        server: "storage".to_string(),
        export: "web-root".to_string(),
        serial: "disk-1".to_string(),
        is_read_only: false,
        is_write_back: true,
        bytes: Some(1 << 30),
        is_connected: true,
        in_flight: 3,
        reads: transfers(1 << 32),
        writes: transfers(300),
        others: 20,
        failures: 1,
        connections: 4,
    }
}

fn file() -> FileInfo {
    FileInfo { name: "vmlinuz".to_string(), bytes: 9_000_000, is_sent: true, is_needed: false }
}

fn settings() -> VmSettings {
    VmSettings {
        weight: Some(300),
        on_panic: Some("reset".to_string()),
        autostart: Some(false),
        vcpus: Some(4),
        memory_bytes: Some(1 << 30),
        cap_percent: Some(150),
        memory_max_bytes: Some(1 << 30),
    }
}

fn requests() -> Vec<RequestBody> {
    vec![
        RequestBody::Info,
        RequestBody::VmList { from_index: 7 },
        RequestBody::VmStart { name: debian() },
        RequestBody::VmStop { name: debian() },
        RequestBody::VmPause { name: debian() },
        RequestBody::VmResume { name: debian() },
        RequestBody::VmReset { name: debian() },
        RequestBody::VmLayout { name: debian() },
        RequestBody::VmRegisters { name: debian(), vcpu: 1 },
        RequestBody::VmMemory { name: debian(), from_gpa: 4096, to_gpa: 1 << 32 },
        RequestBody::ConsoleInput { name: debian(), bytes: vec![0, 13, 0, 255] },
        RequestBody::Log { from_sequence: 1 << 40, limit: 500 },
        RequestBody::Events { from_sequence: 0, limit: 1 },
        RequestBody::Subscribe(Subscription { log: true, events: false, consoles: true }),
        RequestBody::PowerOff,
        RequestBody::CpuList { from_index: 3 },
        RequestBody::CpuOffline { index: 300 },
        RequestBody::CpuOnline { index: 0 },
        RequestBody::Epitaph { from_line: 3 },
        RequestBody::Restart,
        RequestBody::Timeline { from: TimelinePlace { cpu: 1, number: 300 } },
        RequestBody::PciList { from_index: 300 },
        RequestBody::UploadBegin { kind: UploadKind::Image, bytes: 800_000, sha256: [0xa5; 32] },
        RequestBody::UploadData { offset: 4032, bytes: vec![0, 1, 2] },
        RequestBody::UploadDrop,
        RequestBody::RestartUploaded,
        RequestBody::Update { is_dry_run: true, by: UpdateBy::Previous },
        RequestBody::VmPerf { name: debian(), vcpu: 1 },
        RequestBody::ProfileBegin { by: 1 << 20, hz: 99 },
        RequestBody::ProfileRead { by: 1, is_end: true },
        RequestBody::CpuPerf { index: 3 },
        RequestBody::PermitDowngrade,
        RequestBody::VmHold { name: debian(), ms: 15_000 },
        RequestBody::Vulnerabilities,
        RequestBody::Iommus,
        RequestBody::PciAssign { function: "0000:01:00.0".to_string(), guest: debian(), without_reset: true },
        RequestBody::PciRelease { function: "8086:10d3#2".to_string(), guest: Some(debian()), is_forced: true },
        RequestBody::UploadPacked { offset: 8064, bytes: 9000, packed: vec![3, 0], begins: true },
        RequestBody::NetList { from_index: 2 },
        RequestBody::UpdateUnlessConfirmed { is_dry_run: false, by: UpdateBy::Upload, seconds: 300 },
        RequestBody::Confirm,
        RequestBody::VmShutdown { name: debian() },
        RequestBody::SessionBegin { key: [7; 8] },
        RequestBody::Signed(Signed { session: 3, sequence: 1 << 40, signature: [1; 64], body: vec![0] }),
        RequestBody::ControlKeys,
        RequestBody::RevokeControlKey { name: debian() },
        RequestBody::Config { from_byte: 300 },
        RequestBody::VmSet { name: debian(), settings: settings() },
        RequestBody::VmDelete { name: debian() },
        RequestBody::VmCreate { manifest: vec![0, 1, 255] },
        RequestBody::FileList { from_index: 2 },
        RequestBody::FileRemove { name: debian() },
        RequestBody::UploadBegin { kind: UploadKind::File, bytes: 800_000, sha256: [0xa5; 32] },
        RequestBody::SubscribeConsoles { names: vec![debian(), String::new()] },
        RequestBody::DiskList { from_index: 300 },
        RequestBody::CaptureBegin { by: 5, network: "lan".to_string(), guest: Some(debian()), snap_bytes: 300 },
        RequestBody::CaptureRead { by: 5, is_end: true },
        RequestBody::VmSaved { name: debian(), from_byte: 70_000 },
        RequestBody::VmRestore { name: debian(), state: "a5".to_string(), memory: vec!["00".to_string(), debian()] },
        RequestBody::UploadBegin { kind: UploadKind::Memory, bytes: 1 << 30, sha256: [0xa5; 32] },
    ]
}

fn results() -> Vec<Result<ReplyBody, Refusal>> {
    let refusal = Refusal {
        code: RefusalCode::UnknownVm,
        reason: "there is no machine \"debain\"".to_string(),
        hint: "did you mean \"debian\"?".to_string(),
    };
    let record = LogRecord {
        sequence: 3,
        time_ns: 1_500_000_000,
        cpu: 1,
        level: Level::Warn,
        module: "svm".into(),
        text: "no next-RIP save: decoding".into(),
    };
    let event = Event { sequence: 2, time_ns: 9, kind: EventKind::VmStarted { name: debian() } };
    vec![
        Ok(ReplyBody::Done),
        Ok(ReplyBody::Info(host_info())),
        Ok(ReplyBody::Vms { vms: vec![vm_info(0), vm_info(1)], next_index: Some(2) }),
        Ok(ReplyBody::Layout(vec![MemoryRange { gpa: 0, bytes: 512 << 20 }])),
        Ok(ReplyBody::Registers(registers().into())),
        Ok(ReplyBody::Memory { gpa: 0x1000, bytes: vec![0, 1, 2], times: 1, next_gpa: 0x2000 }),
        Ok(ReplyBody::Log { records: vec![record], next_sequence: 4 }),
        Ok(ReplyBody::Events { events: vec![event], next_sequence: 3 }),
        Ok(ReplyBody::Epitaph { lines: vec!["panic: over".to_string()], next_line: Some(1), log_until_ns: Some(9) }),
        Err(refusal),
        Ok(ReplyBody::Cpus { cpus: vec![cpu_info()], next_index: Some(1) }),
        Ok(ReplyBody::Restarted(restart_report())),
        Ok(ReplyBody::Timeline(timeline_page())),
        Ok(pci_functions()),
        Ok(ReplyBody::Received { next_offset: 1 << 20 }),
        Ok(ReplyBody::Updated(update_report())),
        Ok(ReplyBody::Perf { asked_ns: 1 << 33, latest: Some(vcpu_perf().into()) }),
        Ok(ReplyBody::Profile(profile_page())),
        Ok(ReplyBody::CpuPerf { asked_ns: 1 << 33, latest: Some(cpu_perf()) }),
        Ok(ReplyBody::Vulnerabilities(vec![vulnerability()])),
        Ok(ReplyBody::Iommus(vec![iommu()])),
        Ok(ReplyBody::PciAssignment { place: (0, 1, 31, 7), guest: debian(), progress: PciProgress::Asked }),
        Ok(ReplyBody::NetPorts { ports: vec![net_port()], next_index: Some(1) }),
        Ok(ReplyBody::Challenge(Challenge { session: 3, nonce: [9; NONCE_BYTES] })),
        Ok(ReplyBody::ControlKeys(vec![ControlKey {
            name: debian(),
            key: [8; 32],
            role: Some(Role::Operate),
            sessions: 1,
        }])),
        Err(Refusal { code: RefusalCode::Denied, reason: "a reason".to_string(), hint: String::new() }),
        Ok(ReplyBody::Config { bytes: vec![66, 0], total_bytes: 3000 }),
        Ok(ReplyBody::Files { files: vec![file()], next_index: Some(3) }),
        Ok(ReplyBody::Disks { disks: vec![disk()], next_index: Some(1) }),
        Ok(ReplyBody::Capture(capture_page())),
        Ok(ReplyBody::Saved { bytes: vec![66, 0], total_bytes: 70_000 }),
    ]
}

fn vulnerability() -> crate::Vulnerability {
    crate::Vulnerability { name: "spectre_v2".to_string(), status: "Mitigation: IBRS".to_string() }
}

fn timeline_page() -> TimelinePage {
    let begin = TimelinePoint { ticks: 1 << 40, name: 20, kind: 2, argument: 3 };
    let end = TimelinePoint { ticks: (1 << 40) + 5, kind: 3, ..begin };
    let next = Some(TimelinePlace { cpu: 2, number: 7 });
    TimelinePage { cpu: 2, ticks_per_second: 2_400_000_000, points: vec![begin, end], lost: 1, next }
}

fn profile_page() -> ProfilePage {
    let samples = vec![0, 5, 2 << 2 | 2, 0x1_0000, 300];
    ProfilePage { build: [0xa5; 20], code: 0xffff_ffff_8020_1000, period_us: 10_000, asked: 1 << 20, lost: 3, samples }
}

fn registers() -> VcpuRegisters {
    let mut registers = VcpuRegisters { rip: 0xffff_ffff_8100_0000, cr3: 0x1_2000, ..VcpuRegisters::default() };
    registers.gprs[15] = 15;
    registers.segments[1] = SegmentRegister { selector: 0x10, attributes: 0xa9b, limit: u32::MAX, base: 0 };
    registers.idtr = DescriptorTable { base: 0xffff_fe00_0000_0000, limit: 0xfff };
    registers
}

fn cpu_info() -> CpuInfo {
    CpuInfo {
        index: 3,
        apic_id: 6,
        state: CpuState::Leaving,
        reason: Some("a reason".to_string()),
        busy_permille: Some(999),
        vcpus: vec![CpuVcpu { vm: debian(), vcpu: 2 }],
    }
}

pub fn host_info() -> HostInfo {
    HostInfo {
        version: "0.1.0".to_string(),
        image_bytes: 700_000,
        cpus: 2,
        memory_total_bytes: 2 << 30,
        memory_free_bytes: 1 << 30,
        host_overhead_bytes: 9 << 20,
        uptime_ns: 123_456_789,
        virtualization: Virtualization::Svm,
        features: vec!["nested-paging".to_string()],
        apic_mode: ApicMode::X2Apic,
        tsc_hz: 2_400_000_000,
        generation: 3,
        build: "0123456789ab".to_string(),
        security_version: 1,
        permits_downgrade: true,
        oldest_handover: 3,
        newest_handover: 4,
        trusted_keys: vec!["ed25519:00ff".to_string()],
        unclaimed_nmis: 300,
        unexpected_interrupts: 2,
        last_unexpected_vector: Some(0x77),
        signer: Some("00ff00ff00ff00ff".to_string()),
    }
}

fn restart_report() -> RestartReport {
    RestartReport {
        generation: 4,
        old_version: "0.1.0".to_string(),
        new_version: "0.2.0".to_string(),
        host_blackout_ns: 5_000_000,
        machine_blackout_ns: Some(70_000_000),
        cpus: 3,
        cpus_lost: 1,
        verify: Verify::Early,
        bytes_hashed_before: 800_000,
        hashing_before_ns: 900_000,
        bytes_hashed_in_blackout: 0,
        hashing_in_blackout_ns: 0,
        old_build: String::new(),
        new_build: "0123456789ab".to_string(),
        signer: Some("00ff00ff00ff00ff".to_string()),
    }
}

fn pci_functions() -> ReplyBody {
    let cost = PciCost { accesses: 30, ticks: 3_000_000 };
    let survey = PciSurvey {
        policy: PciPolicy::Lazy,
        is_complete: false,
        functions: 57,
        before_guests: Some(PciCost::default()),
        total: cost,
    };
    let function = PciFunction {
        place: (1, 2, 31, 7),
        vendor: 0x8086,
        device: 0x100e,
        class: (2, 0, 0),
        revision: 3,
        bus_behind: Some(4),
        ranges: vec![PciRange { is_ports: false, address: 1 << 40 }],
        capabilities: vec![1, 0x11],
        problems: vec!["it is not".to_string()],
        cost,
        owner: Some(debian()),
        group: Some(300),
        virtual_functions: Some(PciVirtualFunctions {
            total: 4,
            places: Some([(1, 2, 31, 7), (1, 3, 0, 3)]),
            problem: Some("they are not".to_string()),
        }),
    };
    ReplyBody::PciFunctions { survey, functions: vec![function], next_index: Some(1) }
}

fn update_report() -> UpdateReport {
    UpdateReport {
        is_dry_run: true,
        generation: 4,
        old_version: "0.1.0".to_string(),
        new_version: "0.2.0".to_string(),
        preparation_ns: 40_000_000,
        preparation_busy_ns: 20_000_000,
        slices: 80,
        memory_bytes: 10 << 20,
        blackout_ns: 170_000,
        cpus: vec![UpdateSteps { index: 1, left_ns: 9_000, entered_ns: 150_000, ..UpdateSteps::default() }],
        old_build: "0123456789ab".to_string(),
        new_build: "ba9876543210-dirty".to_string(),
        signer: Some("00ff00ff00ff00ff".to_string()),
    }
}

fn vcpu_perf() -> VcpuPerf {
    let cycles = PerfCounter {
        number: 0,
        is_fixed: false,
        event: PerfEvent::Vendor { select: 0x1c2, unit: 0x41 },
        user: true,
        kernel: false,
        state: PerfState::NotCounted,
        value: 1 << 47,
        overflows: 3,
    };
    VcpuPerf {
        at_ns: 1 << 34,
        ran_ns: 300,
        waited_ns: 200,
        counted_ticks: 700,
        exits: vec![ExitCount { kind: ExitKind::MsrWrite, count: 9 }],
        counters: vec![cycles],
    }
}

fn cpu_perf() -> CpuPerf {
    CpuPerf {
        at_ns: 1 << 34,
        began_ns: 1 << 35,
        ticks: 1000,
        host_cycles: 100,
        host_reference_cycles: 101,
        idle_ticks: 500,
        gone_ticks: 50,
        guests: vec![GuestTicks { guest: 1, vcpu: 2, ticks: 349 }],
    }
}

pub fn vm_info(index: u32) -> VmInfo {
    VmInfo {
        name: format!("guest-{index}"),
        state: VmState::Running,
        vcpus: 2,
        memory_bytes: 512 << 20,
        resident_bytes: (index == 1).then_some(96 << 20),
        cpus: vec![0, 1],
        since_ns: 77,
        throttled_since_ns: (index == 1).then_some(78),
        exits_total: 300,
        exits: vec![ExitCount { kind: ExitKind::Cpuid, count: 100 }, ExitCount { kind: ExitKind::Unknown, count: 200 }],
        reason: Some("because".to_string()),
        console: ConsoleOutput { bytes: 70_000, lost_bytes: 300 },
    }
}

fn streams() -> Vec<Stream<'static>> {
    let log = LogRecord { sequence: 0, time_ns: 0, cpu: 0, level: Level::Error, module: "".into(), text: "é".into() };
    let console = Stream::Console { name: "tiny".into(), bytes: Cow::Borrowed(&[0, 1, 0, 0, 10]) };
    let events = event_kinds().into_iter().enumerate();
    let events = events.map(|(index, kind)| Event { sequence: index as u64, time_ns: u64::MAX, kind });
    [Stream::Log(log), console].into_iter().chain(events.map(|event| Stream::Event(Cow::Owned(event)))).collect()
}

fn event_kinds() -> Vec<EventKind> {
    vec![
        EventKind::HostReady,
        EventKind::Garbage { reason: "noise".to_string() },
        EventKind::VmStarted { name: debian() },
        EventKind::VmStopped { name: debian(), reason: "it powered off".to_string() },
        EventKind::VmPaused { name: debian() },
        EventKind::VmResumed { name: debian() },
        EventKind::VmReset { name: debian() },
        EventKind::VmPanicked { name: debian() },
        EventKind::VmFailed { name: debian(), reason: "no memory".to_string() },
        EventKind::VmDebugExit { name: debian(), code: 0x10 },
        EventKind::VmHung { name: debian(), vcpu: 3 },
        EventKind::VmThrottled { name: debian(), vcpu: 0 },
        EventKind::VmRecovered { name: debian(), vcpu: 0 },
        EventKind::VmHeld { name: debian() },
        EventKind::CpuOnline { index: 1 },
        EventKind::CpuOffline { index: 255 },
        EventKind::CpuFailed { index: 2, reason: "silence".to_string() },
        EventKind::HostRestarts { generation: 2 },
        EventKind::HostUpdated { generation: 3 },
        EventKind::ImageReplaced {
            old: "0.1.0 0123".to_string(),
            new: "0.2.0 4567".to_string(),
            signer: Some("00ff00ff00ff00ff".to_string()),
        },
        hardware_error(),
        EventKind::AccessRefused { place: (0, 1, 31, 7), refused: 300, reason: "it may not".to_string() },
        EventKind::FunctionStopped { place: (0, 1, 31, 7), guest: Some(debian()), reason: "it storms".to_string() },
        EventKind::FunctionAssigned { place: (0, 1, 31, 7), guest: debian() },
        EventKind::FunctionReleased { place: (0, 1, 31, 7), guest: debian(), is_forced: true },
        EventKind::UpdateConfirmed { generation: 2 },
        EventKind::UpdateReturns { generation: 2 },
        EventKind::UpdateStays { generation: 2, reason: "it left no file".to_string() },
        EventKind::RequestDenied { key: Some("ops".to_string()), reason: "a reason".to_string() },
        EventKind::KeyRevoked { key: "ops".to_string(), by: Some("root".to_string()) },
        EventKind::Unknown,
        EventKind::VmCreated { name: debian() },
        EventKind::VmDeleted { name: debian() },
        EventKind::VmChanged { name: debian() },
    ]
}

fn iommu() -> IommuUnit {
    let problem = Some("it lacks paging".to_string());
    IommuUnit { kind: IommuKind::AmdVi, segment: 1, registers: 0xfed8_0000, problem, refused: 3 }
}

fn hardware_error() -> EventKind {
    let (status, address) = (0x9c00_0000_0000_0080, Some(0x12_3456_7000));
    EventKind::HardwareError { cpu: 1, bank: 4, status, address, is_corrected: true, polls: 12 }
}

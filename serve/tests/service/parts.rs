// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parts of a host's answers.

use timeline::{Kind, Name};
use wire::{
    ConsoleOutput, CpuInfo, CpuPerf, CpuState, ExitCount, ExitKind, NetDrops, NetFrames, NetPort, PciCost, PciFunction,
    PciPolicy, PciSurvey, TimelinePoint, VmInfo, VmState,
};

fn point(ticks: u64, name: Name, kind: Kind, generation: u32) -> TimelinePoint {
    TimelinePoint { ticks, name: name as u16, kind: kind as u8, argument: generation }
}

pub fn guest(name: &str, state: VmState) -> VmInfo {
    VmInfo {
        name: name.to_owned(),
        state,
        vcpus: 1,
        memory_bytes: 64 << 20,
        resident_bytes: None,
        cpus: vec![0],
        since_ns: 5,
        throttled_since_ns: None,
        exits_total: 12,
        exits: vec![ExitCount { kind: ExitKind::Port, count: 12 }],
        reason: None,
        console: ConsoleOutput { bytes: 5000, lost_bytes: 20 },
    }
}

pub fn cpu() -> CpuInfo {
    CpuInfo { index: 0, apic_id: 0, state: CpuState::Online, reason: None, busy_permille: Some(125), vcpus: vec![] }
}

pub fn port() -> NetPort {
    NetPort {
        network: "lan".to_owned(),
        mtu: 1500,
        guest: "web".to_owned(),
        mac: [2, 0, 0, 0, 0, 1],
        is_up: true,
        vlans: vec![0],
        is_tagged: false,
        is_isolated: false,
        is_trusted: false,
        stations: 0,
        sent: NetFrames { frames: 3, bytes: 300 },
        received: NetFrames { frames: 4, bytes: 400 },
        drops: NetDrops { full: 2, ..NetDrops::default() },
    }
}

pub fn survey() -> PciSurvey {
    let total = PciCost::default();
    PciSurvey { policy: PciPolicy::All, is_complete: true, functions: 0, before_guests: None, total }
}

/// A bridge, a function of the guest `web`, and one that is free and has a problem.
pub fn pci_functions() -> Vec<PciFunction> {
    let function = |device: u8, bus_behind, owner: Option<&str>, problems: &[&str]| PciFunction {
        place: (0, 0, device, 0),
        vendor: 0x1af4,
        device: 0x1041,
        class: (2, 0, 0),
        revision: 1,
        bus_behind,
        ranges: vec![],
        capabilities: vec![],
        problems: problems.iter().map(|problem| (*problem).to_owned()).collect(),
        cost: PciCost::default(),
        owner: owner.map(str::to_owned),
        group: None,
        virtual_functions: None,
    };
    vec![
        function(1, Some(1), None, &[]),
        function(2, None, Some("web"), &[]),
        function(3, None, None, &["its capabilities are a circle"]),
    ]
}

/// A boot of 500 us until the first guest's first instruction.
pub fn boot() -> Vec<TimelinePoint> {
    vec![
        point(100, Name::FirstInstruction, Kind::Instant, 1),
        point(100, Name::Boot, Kind::Begin, 1),
        point(400, Name::Boot, Kind::End, 1),
        point(600, Name::FirstGuestInstruction, Kind::Instant, 0),
    ]
}

/// An update that is prepared in 200 us, with a blackout of 150.
pub fn update(generation: u32) -> Vec<TimelinePoint> {
    let at = u64::from(generation) * 1000;
    vec![
        point(at, Name::Stage, Kind::Begin, generation),
        point(at + 100, Name::Stage, Kind::End, generation),
        point(at + 110, Name::FirstInstruction, Kind::Instant, generation),
        point(at + 200, Name::UpdateBlackout, Kind::Begin, generation),
        point(at + 200, Name::UpdateSave, Kind::Begin, generation),
        point(at + 240, Name::UpdateSave, Kind::End, generation),
        point(at + 350, Name::UpdateBlackout, Kind::End, generation),
    ]
}

/// Counts 10 ms more: three tenths of them are guests', one is the host's.
pub fn count(counts: &mut CpuPerf) -> CpuPerf {
    for (ticks, more) in [
        (&mut counts.at_ns, 10_000_000),
        (&mut counts.ticks, 10_000_000),
        (&mut counts.gone_ticks, 3_000_000),
        (&mut counts.host_reference_cycles, 1_000_000),
        (&mut counts.idle_ticks, 6_000_000),
    ] {
        *ticks += more;
    }
    counts.clone()
}

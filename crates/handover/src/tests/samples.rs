// SPDX-License-Identifier: MIT OR Apache-2.0
//! A record with something in every section, and an image.

use std::vec;
use std::vec::Vec;

use crate::layout::guests::*;
use crate::layout::*;
use crate::state::BlockKind;
use crate::write::Writer;

pub struct Sample {
    pub host: Host,
    pub memory_map: Vec<Region>,
    pub modules: Vec<Module>,
    pub command_line: &'static str,
    pub rsdp: Option<u64>,
    pub clock: Clock,
    pub switch_pages: SwitchPages,
    pub cpus: Vec<Cpu>,
    pub kept: Vec<Kept>,
    pub stamps: Stamps,
    pub control: Control,
    pub log: Vec<LogRing>,
    pub checked: Checked,
    pub guests: Vec<Guest>,
    pub guest_memory: Vec<GuestMemory>,
    pub blocks: Vec<BlockPlace>,
    pub retired: Vec<Retired>,
    pub assignments: Vec<Assignment>,
    pub ports: Vec<PortCounters>,
    pub deadline: Deadline,
    pub revoked: Vec<RevokedKey>,
    pub signer: Signer,
}

impl Sample {
    pub fn new() -> Self {
        let kept = |start: u64, bytes: u64, purpose: Purpose| Kept {
            start: start.into(),
            bytes: bytes.into(),
            purpose: (purpose as u32).into(),
            zero: 0.into(),
        };
        let region = |start: u64, bytes: u64, kind: u32| Region {
            start: start.into(),
            bytes: bytes.into(),
            kind: kind.into(),
            zero: 0.into(),
        };
        let cpu = |number: u32, state: CpuState, mailbox: u64| Cpu {
            apic_id: (number * 2).into(),
            state: (state as u32).into(),
            mailbox: mailbox.into(),
            number: number.into(),
            zero: 0.into(),
        };
        Self {
            host: Host {
                generation: 7.into(),
                reason: (Reason::Asked as u32).into(),
                clocks_agree: 1.into(),
                slot_start: (6 << 20).into(),
                slot_bytes: (2 << 20).into(),
                version: padded("0.1.0"),
            },
            memory_map: vec![region(0, 0x9f000, 1), region(0x9f000, 0x1000, 2), region(0x10_0000, 1 << 30, 1)],
            modules: vec![Module { start: 0x3000_0000.into(), bytes: 12_345.into(), line: padded("bundle") }],
            command_line: "log=debug smp=park",
            rsdp: Some(0xf_5a90),
            clock: Clock {
                tsc_hz: 2_400_000_000.into(),
                tsc_at_boot: 99.into(),
                apic_ratio: (1 << 31).into(),
                unix_seconds_at_boot: 1_700_000_000.into(),
            },
            switch_pages: crate::layout::SwitchPages {
                mailbox_version: 1.into(),
                zero: 0.into(),
                root: 0x80_4000.into(),
            },
            cpus: vec![
                cpu(0, CpuState::HandsOver, 0),
                cpu(1, CpuState::Parked, 0x80_2100),
                cpu(3, CpuState::Lost, 0x80_2300),
            ],
            kept: vec![
                kept(6 << 20, 2 << 20, Purpose::Image),
                kept(0x80_0000, 0x8000, Purpose::SwitchPages),
                kept(0x81_0000, 0x1_0000, Purpose::Record),
                kept(0x82_0000, 0x2000, Purpose::Log),
                kept(0x83_0000, 0x1_0000, Purpose::Blocks),
            ],
            stamps: Stamps { asked: 1.into(), stopped: 2.into(), parked: 3.into(), left: 4.into() },
            control: Control {
                request: 9.into(),
                flags: 3.into(),
                log_since: 5.into(),
                next_event: 6.into(),
                events: 7.into(),
            },
            log: vec![LogRing {
                start: 0x82_0000.into(),
                bytes: 0x2000.into(),
                records: 44.into(),
                cpu: 1.into(),
                zero: 0.into(),
            }],
            checked: Checked {
                policy: (CheckPolicy::Early as u32).into(),
                zero: 0.into(),
                staged_bytes: 800_000.into(),
                staged_ticks: 9.into(),
                blackout_bytes: 0.into(),
                blackout_ticks: 0.into(),
            },
            guests: vec![guest(0, "web", GuestState::Running), guest(1, "old", GuestState::Stopped)],
            guest_memory: vec![
                memory(0x100_0000, 0x100_0000, 0, MemoryUse::Memory),
                memory(0x200_0000, 0x2000, 0, MemoryUse::NestedTables),
            ],
            blocks: vec![
                block(0x83_0000, 0x2000, BlockKind::Policy, 0),
                block(0x83_2000, 0x2000, BlockKind::Vcpu, 0),
                block(0x83_4000, 0x2000, BlockKind::Vcpu, 1),
                block(0x83_6000, 0x2000, BlockKind::Devices, 0),
                block(0x83_8000, 0x6000, BlockKind::Console, 0),
                block(0x83_e000, 0x1000, BlockKind::Late, 0),
            ],
            retired: vec![retired(0x2000_3000, 0x1000), retired(0x2040_0000, 0x20_0000)],
            ports: vec![port(0), port(7)],
            deadline: Deadline { seconds: 90.into(), zero: 0.into() },
            revoked: vec![RevokedKey { key: [7; 32] }],
            signer: Signer { key: [8; 32] },
            assignments: vec![
                assignment("old", 0x0100, assignment_flag::IS_ASSIGNED | assignment_flag::WITHOUT_RESET),
                assignment("web", 0x00f8, 0),
            ],
        }
    }

    pub fn record(&self) -> Vec<u8> {
        self.written(None, |_| ())
    }

    pub fn without(&self, kind: Kind) -> Vec<u8> {
        self.written(Some(kind), |_| ())
    }

    /// The record without one section, and with what `more` adds.
    pub fn written(&self, without: Option<Kind>, more: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        self.in_version(crate::VERSION, without, more)
    }

    /// The same for a reader of a version.
    pub fn in_version(&self, version: u32, without: Option<Kind>, more: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let mut bytes = vec![0; crate::MAX_RECORD_BYTES];
        let mut writer = Writer::for_version(&mut bytes, version);
        for kind in Kind::ALL.iter().copied().filter(|kind| Some(*kind) != without) {
            self.write(&mut writer, kind);
        }
        more(&mut writer);
        let length = writer.finish().expect("it fits");
        bytes.truncate(length);
        bytes
    }

    pub fn write(&self, writer: &mut Writer<'_>, kind: Kind) {
        match kind {
            Kind::Host => writer.one(kind, &self.host),
            Kind::MemoryMap => writer.each(kind, self.memory_map.iter().copied()),
            Kind::Modules => writer.each(kind, self.modules.iter().copied()),
            Kind::CommandLine => writer.raw(kind, self.command_line.as_bytes()),
            Kind::Firmware => writer.raw(kind, self.rsdp.map(u64::to_le_bytes).as_ref().map_or(&[], |rsdp| &rsdp[..])),
            Kind::Clock => writer.one(kind, &self.clock),
            Kind::SwitchPages => writer.one(kind, &self.switch_pages),
            Kind::Cpus => writer.each(kind, self.cpus.iter().copied()),
            Kind::Kept => writer.each(kind, self.kept.iter().copied()),
            Kind::Stamps => writer.one(kind, &self.stamps),
            Kind::Control => writer.one(kind, &self.control),
            Kind::Log => writer.each(kind, self.log.iter().copied()),
            Kind::Checked => writer.one(kind, &self.checked),
            Kind::Build => writer.raw(kind, b"a1b2c3"),
            Kind::Retired => writer.each(kind, self.retired.iter().copied()),
            Kind::Assignments => writer.each(kind, self.assignments.iter().copied()),
            Kind::Ports => writer.each(kind, self.ports.iter().copied()),
            Kind::Deadline => writer.one(kind, &self.deadline),
            Kind::RevokedKeys => writer.each(kind, self.revoked.iter().copied()),
            Kind::Signer => writer.one(kind, &self.signer),
            Kind::Guests => writer.each(kind, self.guests.iter().copied()),
            Kind::GuestMemory => writer.each(kind, self.guest_memory.iter().copied()),
            Kind::Blocks => writer.each(kind, self.blocks.iter().copied()),
        };
    }
}

pub fn retired(start: u64, bytes: u64) -> Retired {
    Retired { start: start.into(), bytes: bytes.into() }
}

pub fn port(number: u32) -> PortCounters {
    let count = |index: u32| (1000 * u64::from(number) + u64::from(index)).into();
    PortCounters {
        network: 0.into(),
        port: number.into(),
        sent_frames: count(1),
        sent_bytes: count(2),
        received_frames: count(3),
        received_bytes: count(4),
        drops: std::array::from_fn(|index| count(10 + index as u32)),
    }
}

pub fn assignment(guest: &str, requester: u16, flags: u32) -> Assignment {
    Assignment { guest: padded(guest), segment: 0.into(), requester: requester.into(), flags: flags.into() }
}

/// A guest with two vCPUs.
fn guest(number: u32, name: &str, state: GuestState) -> Guest {
    let has_run = state == GuestState::Running;
    Guest {
        name: padded(name),
        config_digest: 0x1234_5678_9abc_def0.into(),
        since_ns: 5_000_000_000.into(),
        since_before_pause_ns: 0.into(),
        nested_root: if has_run { 0x200_0000 } else { 0 }.into(),
        number: number.into(),
        vcpus: 2.into(),
        state: (state as u32).into(),
        state_before_pause: 0.into(),
        flags: if has_run { guest_flag::HAS_RUN } else { 0 }.into(),
        zero: 0.into(),
        reason: padded(if has_run { "" } else { "powered off" }),
        throttled_since_ns: if has_run { 77 } else { 0 }.into(),
    }
}

fn memory(start: u64, bytes: u64, guest_address: u64, purpose: MemoryUse) -> GuestMemory {
    GuestMemory {
        start: start.into(),
        bytes: bytes.into(),
        guest_address: guest_address.into(),
        guest: 0.into(),
        purpose: (purpose as u32).into(),
    }
}

fn block(start: u64, bytes: u64, kind: BlockKind, vcpu: u32) -> BlockPlace {
    BlockPlace {
        start: start.into(),
        bytes: bytes.into(),
        kind: (kind as u32).into(),
        guest: 0.into(),
        vcpu: vcpu.into(),
        cpu: 1.into(),
        own_cpu: 1.into(),
        zero: 0.into(),
    }
}

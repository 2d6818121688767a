// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hand-over blocks of hosts with any guests and CPUs.

use handover::layout::guests::{BlockPlace, Guest, GuestMemory, GuestState, MemoryUse, guest_flag};
use handover::layout::{Clock, Cpu, CpuState, Host, Kept, Kind, Purpose, Reason, Region, SwitchPages, padded};
use handover::record::Record;
use handover::state::BlockKind;
use handover::{MAX_RECORD_BYTES, Writer};

const PAGE: u64 = 4096;
/// Blocks, and memory of guests, by number.
const BLOCKS: u64 = 0x1000_0000;
const MEMORY: u64 = 0x2000_0000;
pub const SWITCH_PAGES: u64 = 0x80_0000;
const MAILBOX_BYTES: u64 = 64;

/// A guest as it is handed over: where its vCPUs are, by number.
#[derive(Clone, Debug)]
pub struct GuestSample {
    pub cpus: Vec<u32>,
    pub flags: u32,
    pub has_run: bool,
}

impl GuestSample {
    pub fn on(cpus: &[u32]) -> Self {
        Self { cpus: cpus.to_vec(), flags: 0, has_run: true }
    }
}

pub fn name(number: usize) -> String {
    format!("guest-{number}")
}

pub fn digest(number: usize) -> u64 {
    1000 + number as u64
}

/// A host that hands over.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    pub guests: Vec<GuestSample>,
    /// Other CPUs: identifier, state, and address of the mailbox.
    pub cpus: Vec<(u32, CpuState, u64)>,
    pub mailbox_version: u32,
}

pub fn mailbox(place: u64) -> u64 {
    SWITCH_PAGES + place * MAILBOX_BYTES
}

impl Sample {
    pub fn with(&self, run: impl FnOnce(&Record<'_>)) {
        let bytes = self.bytes();
        run(&Record::open(&bytes).expect("a whole block"));
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; MAX_RECORD_BYTES];
        let mut writer = Writer::new(&mut bytes);
        let switch_pages =
            SwitchPages { mailbox_version: self.mailbox_version.into(), zero: 0.into(), root: SWITCH_PAGES.into() };
        writer.one(Kind::Host, &host()).one(Kind::Clock, &clock()).one(Kind::SwitchPages, &switch_pages);
        writer.raw(Kind::CommandLine, b"").raw(Kind::Firmware, b"");
        let usable = Region { start: 0x10_0000.into(), bytes: (1_u64 << 34).into(), kind: 1.into(), zero: 0.into() };
        writer.each(Kind::MemoryMap, [usable]).each(Kind::Modules, [] as [handover::layout::Module; 0]);
        writer.each(Kind::Cpus, self.cpus()).each(Kind::Kept, self.kept());
        let guests = || self.guests.iter().enumerate();
        writer.each(Kind::Guests, guests().map(|(number, guest)| guest_section(number, guest)));
        writer.each(Kind::GuestMemory, guests().flat_map(|(number, guest)| memory(number, guest)));
        writer.each(Kind::Blocks, guests().flat_map(|(number, guest)| blocks(number, guest)));
        let length = writer.finish().expect("it fits");
        bytes.truncate(length);
        bytes
    }

    fn cpus(&self) -> Vec<Cpu> {
        let leader = (0, CpuState::HandsOver, 0);
        // CPUs that have vCPUs, beside those that the test names.
        let most = self.guests.iter().flat_map(|guest| &guest.cpus).max().map_or(0, |cpu| *cpu as usize);
        let others = (self.cpus.len()..most).map(|place| (1000 + place as u32, CpuState::Lost, 0));
        let all = std::iter::once(leader).chain(self.cpus.iter().copied()).chain(others);
        let section = |(number, (apic_id, state, mailbox)): (u32, (u32, CpuState, u64))| Cpu {
            apic_id: apic_id.into(),
            state: (state as u32).into(),
            mailbox: mailbox.into(),
            number: number.into(),
            zero: 0.into(),
        };
        (0..).zip(all).map(section).collect()
    }

    fn kept(&self) -> Vec<Kept> {
        let kept = |start: u64, bytes: u64, purpose: Purpose| Kept {
            start: start.into(),
            bytes: bytes.into(),
            purpose: (purpose as u32).into(),
            zero: 0.into(),
        };
        let guests = self.guests.len().max(1) as u64;
        vec![
            kept(6 << 20, 2 << 20, Purpose::Image),
            kept(SWITCH_PAGES, 0x1_0000, Purpose::SwitchPages),
            kept(0x90_0000, 0x4_0000, Purpose::Record),
            kept(BLOCKS, guests * GUEST_BLOCKS * PAGE, Purpose::Blocks),
        ]
    }
}

/// Blocks that a guest may have.
const GUEST_BLOCKS: u64 = 256;

fn host() -> Host {
    Host {
        generation: 2.into(),
        reason: (Reason::Update as u32).into(),
        clocks_agree: 1.into(),
        slot_start: (6 << 20).into(),
        slot_bytes: (2 << 20).into(),
        version: padded("0.1.0"),
    }
}

fn clock() -> Clock {
    Clock {
        tsc_hz: 2_000_000_000.into(),
        tsc_at_boot: 1.into(),
        apic_ratio: (1_u64 << 31).into(),
        unix_seconds_at_boot: 1.into(),
    }
}

fn guest_section(number: usize, guest: &GuestSample) -> Guest {
    let state = if guest.has_run { GuestState::Running } else { GuestState::Stopped };
    let run = if guest.has_run { guest_flag::HAS_RUN } else { 0 };
    Guest {
        name: padded(&name(number)),
        config_digest: digest(number).into(),
        since_ns: 5.into(),
        since_before_pause_ns: 0.into(),
        nested_root: if guest.has_run { tables(number) } else { 0 }.into(),
        number: (number as u32).into(),
        vcpus: (guest.cpus.len() as u32).into(),
        state: (state as u32).into(),
        state_before_pause: 0.into(),
        flags: (run | guest.flags).into(),
        zero: 0.into(),
        reason: padded(""),
        throttled_since_ns: 0.into(),
    }
}

fn tables(number: usize) -> u64 {
    MEMORY + (number as u64 * 4 + 2) * PAGE
}

/// Two pieces, of which the lower one in the machine is the higher one in the guest.
fn memory(number: usize, guest: &GuestSample) -> Vec<GuestMemory> {
    let piece = |place: u64, guest_address: u64, purpose: MemoryUse| GuestMemory {
        start: (MEMORY + (number as u64 * 4 + place) * PAGE).into(),
        bytes: PAGE.into(),
        guest_address: guest_address.into(),
        guest: (number as u32).into(),
        purpose: (purpose as u32).into(),
    };
    let all =
        vec![piece(0, PAGE, MemoryUse::Memory), piece(1, 0, MemoryUse::Memory), piece(2, 0, MemoryUse::NestedTables)];
    if guest.has_run { all } else { Vec::new() }
}

fn blocks(number: usize, guest: &GuestSample) -> Vec<BlockPlace> {
    if !guest.has_run {
        return Vec::new();
    }
    let home = guest.cpus.first().copied().unwrap_or(0);
    let first = BLOCKS + number as u64 * GUEST_BLOCKS * PAGE;
    let place = |at: u64, kind: BlockKind, vcpu: u32, cpu: u32| BlockPlace {
        start: (first + at * PAGE).into(),
        bytes: PAGE.into(),
        kind: (kind as u32).into(),
        guest: (number as u32).into(),
        vcpu: vcpu.into(),
        cpu: cpu.into(),
        own_cpu: cpu.into(),
        zero: 0.into(),
    };
    let shared = [place(0, BlockKind::Policy, 0, home), place(1, BlockKind::Devices, 0, home)];
    let vcpus = (0..).zip(&guest.cpus).map(|(vcpu, cpu)| place(2 + u64::from(vcpu), BlockKind::Vcpu, vcpu, *cpu));
    shared.into_iter().chain(vcpus).collect()
}

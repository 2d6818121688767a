// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of the hardware, which QEMU's monitor injects into a CPU that no guest runs on: the emulator ignores the
//! intercept of #MC, so that one which interrupts a guest is only modelled (`crates/mca`, `crates/svm`).

use anyhow::{Context as _, Result, ensure};
use baton::size::Size;
use e2e::host::{BOOT_LIMIT, Host};
use e2e::recipe::{Recipe, tiny};
use lab::Ending;
use lab::qmp::{self, Monitor};
use wire::{EventKind, RequestBody, VmState};

use super::Rule;
use super::update::update;

pub const RULES: &[Rule] = &[
    ("hardware_errors_cost_only_what_they_damage", hardware_errors_cost_only_what_they_damage),
    ("damaged_memory_stays_retired_over_updates_and_restarts", damaged_memory_stays_retired),
];

/// The CPU that holds no guest.
const IDLE: u32 = 2;
/// Intel's flags, which QEMU's machine has: valid, enabled, MISC and ADDR valid.
const CORRECTED: u64 = 0x9c00_0000_0000_009f;
/// The same uncorrected and signalled, of data that no CPU has used.
const OPTIONAL: u64 = 0xbd00_0000_0000_00c0;
/// Valid, uncorrected, enabled, the CPU's own state is corrupt.
const CORRUPT: u64 = 0xb200_0000_0000_0005;
/// A #MC is in progress; the interrupted context can resume.
const RESUMABLE: u64 = 0b101;
/// A physical address, known to a page.
const PAGE: u64 = 0x8c;

fn inject(monitor: &mut Monitor, bank: u32, status: u64, address: u64) -> Result<()> {
    let output = monitor.human(&format!("mce {IDLE} {bank} {status:#x} {RESUMABLE:#x} {address:#x} {PAGE:#x}"))?;
    ensure!(output.is_empty(), "QEMU reports: {output}");
    Ok(())
}

fn error(bank: u32, status: u64, address: u64, is_corrected: bool) -> EventKind {
    EventKind::HardwareError { cpu: IDLE, bank, status, address: Some(address), is_corrected, polls: 1 }
}

/// Returns where the host has put the victim's memory at its start of this number, from 1. The host's log comes by
/// another way than its guests' consoles, and may come later.
fn memory_of(host: &mut Host, start: usize) -> Result<u64> {
    let is_it = |line: &&String| line.contains("18 MiB") && line.contains("is a guest's");
    host.wait(&format!("memory for start {start} of the victim"), |seen| {
        seen.host.iter().filter(is_it).count() >= start
    })?;
    let line = host.seen.host.iter().filter(is_it).nth(start - 1);
    let address = line.and_then(|line| line.split("memory 0x").nth(1)?.split(|c: char| !c.is_ascii_hexdigit()).next());
    u64::from_str_radix(address.context("no address in the line")?, 16).context("it is a number")
}

/// A host with a guest that is to be hit and one beside it, and its monitor.
fn start() -> Result<(Host, Monitor)> {
    let mut victim = tiny("victim", "keeper", "do=wait")?;
    victim.memory = Size::mebibytes(18);
    let beside = tiny("beside", "keeper", "seed=7 do=watch")?;
    let recipe = Recipe::new().cpus(3).options("log=debug").guest(victim).guest(beside);
    let mut socket = None;
    let host = recipe.start_changed(Some(&recipe.bundle()?), |folder, mut machine| {
        let at = folder.join("monitor");
        machine.extra.extend(qmp::arguments(&at));
        socket = Some(at);
        Ok(machine)
    })?;
    let monitor = Monitor::connect(&socket.context("the machine was made")?)?;
    Ok((host, monitor))
}

/// Corrected: an event. In a guest's memory: that guest ends, the memory is used no more, and its neighbour misses
/// nothing. In the CPU: the host ends with a report.
fn hardware_errors_cost_only_what_they_damage() -> Result<()> {
    let (mut host, mut monitor) = start()?;
    host.guest_prints("victim", "keeper: wait: going")?;
    host.guest_prints("beside", "keeper: watch: 1:")?;

    inject(&mut monitor, 4, CORRECTED, 0x1234_5000)?;
    host.event(&error(4, CORRECTED, 0x1234_5000, true))?;

    let damaged = memory_of(&mut host, 1)? + 0x40_3000;
    inject(&mut monitor, 1, OPTIONAL, damaged)?;
    host.event(&error(1, OPTIONAL, damaged, false))?;
    let reason = host.failure("victim")?;
    ensure!(reason.contains("0x403000 is damaged") && reason.contains("bank 1"), "{reason}");
    host.logs(&["4 KiB are not used any more", &format!("bad-memory={damaged:#x}")])?;
    host.order(RequestBody::VmStart { name: "victim".into() })?;
    host.guest_prints("victim", "keeper: wait: going")?;
    without(&mut host, 2, &[damaged])?;
    host.guest_prints("beside", "keeper: watch: ")?;
    ensure!(
        host.vm("beside")?.state == VmState::Running && !host.seen.console("beside").contains("WRONG"),
        "{}",
        host.seen
    );

    // Were MCG_STATUS.MCIP still set after the error before, QEMU would reset the machine.
    inject(&mut monitor, 0, CORRUPT, 0)?;
    ensure!(host.ending()? == Ending::Panicked, "{}", host.seen);
    host.logs(&["machine check: bank 0, status 0xb200000000000005", "PCC"])
}

/// Each image gets the list of the one before it and adds to it.
fn damaged_memory_stays_retired() -> Result<()> {
    let (mut host, mut monitor) = start()?;
    host.guest_prints("victim", "keeper: wait: going")?;
    host.guest_prints("beside", "keeper: watch: 1:")?;
    let first = memory_of(&mut host, 1)? + 0x40_3000;
    inject(&mut monitor, 1, OPTIONAL, first)?;
    host.failure("victim")?;
    update(&mut host)?;
    adopts(&mut host, 1)?;
    let free = host.client()?.info()?.memory_free_bytes;

    host.order(RequestBody::VmStart { name: "victim".into() })?;
    host.guest_prints("victim", "keeper: wait: going")?;
    let second = without(&mut host, 2, &[first])? + 0x10_0000;
    inject(&mut monitor, 1, OPTIONAL, second)?;
    host.failure("victim")?;
    host.logs(&["4 KiB are not used any more", &format!("bad-memory={second:#x}")])?;
    update(&mut host)?;
    adopts(&mut host, 3)?;
    let info = host.client()?.info()?;
    ensure!((info.generation, info.memory_free_bytes) == (3, free - 4096), "{free} bytes were free: {info:?}");

    host.client()?.request_within(BOOT_LIMIT, RequestBody::Restart)?;
    adopts(&mut host, 5)?;
    host.guest_prints("victim", "keeper: wait: going")?;
    without(&mut host, 3, &[first, second])?;
    host.powers_off()
}

/// The victim's memory at this start, which has none of these pages.
fn without(host: &mut Host, start: usize, pages: &[u64]) -> Result<u64> {
    let memory = memory_of(host, start)?;
    let given = pages.iter().find(|page| (memory..memory + (18 << 20)).contains(page));
    ensure!(given.is_none(), "{given:x?} was given to a guest again: {}", host.seen);
    Ok(memory)
}

/// Waits until the images so far have reported so many times that the image before retired a page.
fn adopts(host: &mut Host, times: usize) -> Result<()> {
    let is_line = |line: &&String| line.contains("is damaged: the image before has retired 4 KiB");
    host.wait("damaged memory of the image before", |seen| seen.host.iter().filter(is_line).count() >= times)?;
    ensure!(host.seen.host.iter().filter(is_line).count() == times, "{}", host.seen);
    Ok(())
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests that misbehave, beside one that does not and does not notice.

use anyhow::{Result, ensure};
use baton::config::Guest;
use e2e::dmesg;
use e2e::host::Host;
use e2e::recipe::{Recipe, tiny};
use wire::{EventKind, RequestBody, VmState};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("all_that_can_be_answered_is_answered_as_the_architecture_says", all_that_can_be_answered_is_answered),
    ("guests_that_cannot_go_on_are_stopped_with_the_reason", guests_that_cannot_go_on_are_stopped_with_the_reason),
    ("a_guest_that_spins_with_interrupts_off_can_be_stopped", a_guest_that_spins_with_interrupts_off_can_be_stopped),
    ("a_guest_that_executes_noise_is_contained", a_guest_that_executes_noise_is_contained),
];

/// The guest that behaves.
const GOOD: &str = "good";
/// What a guest of ours writes to its debug-exit port when all was right.
const RIGHT: u32 = 0x10;

/// A Linux guest on the first processor, hostile ones each on another.
fn beside_good(hostile: &[(&str, &str)]) -> Result<Host> {
    let mut recipe = Recipe::new().cpus(1 + hostile.len() as u32).linux(GOOD, "heartbeat:50")?;
    for (name, ways) in hostile {
        recipe = recipe.hostile(name, ways)?;
    }
    recipe.start()
}

/// The good guest has run all the time without a break or a complaint, and runs on.
fn is_untouched(host: &mut Host) -> Result<()> {
    host.beats(GOOD, 5)?;
    let beats = host.seen.heartbeats(GOOD);
    let expected: Vec<u64> = (0..beats.len() as u64).collect();
    ensure!(beats == expected, "its heartbeats are broken: {beats:?}\n{}", host.seen);
    let console = host.seen.console(GOOD);
    let complaints = dmesg::suspicious(&console);
    ensure!(complaints.is_empty(), "it complains: {complaints:#?}");
    ensure!(host.vm(GOOD)?.state == VmState::Running, "{}", host.seen);
    Ok(())
}

fn all_that_can_be_answered_is_answered() -> Result<()> {
    let mut host = beside_good(&[("all", "all")])?;
    host.state("all", VmState::Stopped)?;
    let console = host.seen.console("all");
    let wrong: Vec<&str> = console.lines().filter(|line| line.contains("WRONG")).collect();
    ensure!(wrong.is_empty(), "{wrong:#?}\n{}", host.seen);
    host.event(&EventKind::VmDebugExit { name: "all".into(), code: RIGHT })?;
    is_untouched(&mut host)?;
    host.powers_off()
}

fn guests_that_cannot_go_on_are_stopped_with_the_reason() -> Result<()> {
    let deaths = [
        ("execute-hole", "no memory"),
        ("tables-in-hole", "its page tables are at"),
        ("all-tables", "triple fault"),
        ("triple-fault", "triple fault"),
        ("hlt-cli", "halted with interrupts off"),
    ];
    let mut host = beside_good(&deaths.map(|(way, _)| (way, way)))?;
    for (way, reason) in deaths {
        host.guest_says(way, "going")?;
        let found = ended_or_caught(&mut host, way)?;
        ensure!(found.contains(reason) || found == "caught", "{way}: {found:?}\n{}", host.seen);
    }
    is_untouched(&mut host)?;
    host.powers_off()
}

/// Why a guest was stopped; "caught" where it took an exception as the architecture says and ended by itself.
fn ended_or_caught(host: &mut Host, name: &str) -> Result<String> {
    loop {
        let vm = host.vm(name)?;
        match vm.state {
            VmState::Failed => return Ok(vm.reason.unwrap_or_default()),
            VmState::Stopped => {
                host.event(&EventKind::VmDebugExit { name: name.to_owned(), code: RIGHT })?;
                return Ok("caught".to_owned());
            }
            _ => host.wait_a_moment()?,
        }
    }
}

fn a_guest_that_spins_with_interrupts_off_can_be_stopped() -> Result<()> {
    // It is not to be noticed as one that hangs, however long the other takes to boot.
    let spins = Guest { hung_s: 0, ..tiny("spins", "hostile", "do=hang-cli")? };
    let mut host = Recipe::new().cpus(2).linux(GOOD, "heartbeat:50")?.guest(spins).start()?;
    host.guest_says("spins", "going")?;
    host.beats(GOOD, 10)?;
    ensure!(host.vm("spins")?.state == VmState::Running, "{}", host.seen);
    for _ in 0..2 {
        host.order(RequestBody::VmPause { name: "spins".into() })?;
        host.state("spins", VmState::Paused)?;
        host.order(RequestBody::VmResume { name: "spins".into() })?;
        host.state("spins", VmState::Running)?;
    }
    host.order(RequestBody::VmReset { name: "spins".into() })?;
    host.guest_says("spins", "going")?;
    host.order(RequestBody::VmStop { name: "spins".into() })?;
    host.event(&EventKind::VmStopped { name: "spins".into(), reason: "stopped by the operator".into() })?;
    is_untouched(&mut host)?;
    host.powers_off()
}

/// It may do anything; whatever that is, it is stopped by itself or can be stopped.
fn a_guest_that_executes_noise_is_contained() -> Result<()> {
    let mut host = beside_good(&[("noise", "noise")])?;
    host.guest_says("noise", "going")?;
    host.beats(GOOD, 20)?;
    if matches!(host.vm("noise")?.state, VmState::Running | VmState::Panicked) {
        host.order(RequestBody::VmStop { name: "noise".into() })?;
        host.state("noise", VmState::Stopped)?;
    }
    is_untouched(&mut host)?;
    host.powers_off()
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests that misbehave, beside one that does not and does not notice.

use anyhow::{Result, ensure};
use baton::config::Guest;
use e2e::dmesg;
use e2e::host::Host;
use e2e::recipe::{Recipe, tiny};
use e2e::transcript::Transcript;
use wire::{EventKind, RequestBody, VmState};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("all_that_can_be_answered_is_answered_as_the_architecture_specifies", all_that_can_be_answered_is_answered),
    ("guests_that_cannot_go_on_are_stopped_with_the_reason", guests_that_cannot_go_on_are_stopped_with_the_reason),
    ("a_guest_that_spins_with_interrupts_off_can_be_stopped", a_guest_that_spins_with_interrupts_off_can_be_stopped),
    (
        "guests_of_noise_and_of_endless_debug_exceptions_are_contained",
        guests_of_noise_and_of_endless_debug_exceptions_are_contained,
    ),
];

/// The guest that behaves.
const GOOD: &str = "good";
/// Code that a test guest writes to its debug-exit port on success.
const RIGHT: u32 = 0x10;

/// A Linux guest on the first CPU, hostile ones each on another.
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
    host.seen.no_heartbeat_is_missing(GOOD)?;
    let console = host.seen.console(GOOD);
    let complaints = dmesg::suspicious(&console);
    ensure!(complaints.is_empty(), "it complains: {complaints:#?}");
    ensure!(host.vm(GOOD)?.state == VmState::Running, "{}", host.seen);
    Ok(())
}

fn all_that_can_be_answered_is_answered() -> Result<()> {
    let mut host = beside_good(&[("all", "all"), ("list", "list")])?;
    host.state("all", VmState::Stopped)?;
    host.state("list", VmState::Stopped)?;
    // A guest's state and its console come to the tool by two ways: its last lines may still be on theirs.
    for name in ["all", "list"] {
        host.event(&EventKind::VmDebugExit { name: name.into(), code: RIGHT })?;
    }
    host.wait("the last line of each way", |seen| every_way_is_tried(seen).is_ok())?;
    let console = host.seen.console("all");
    let wrong: Vec<&str> = console.lines().filter(|line| line.contains("WRONG")).collect();
    ensure!(wrong.is_empty(), "{wrong:#?}\n{}", host.seen);
    is_untouched(&mut host)?;
    host.powers_off()
}

/// Every way that the guest lists is among those that it comes back from, or among those of the tests below.
fn every_way_is_tried(seen: &Transcript) -> Result<()> {
    let (list, all) = (seen.console("list"), seen.console("all"));
    let listed: Vec<&str> = list.lines().filter_map(|line| line.trim().strip_prefix("hostile: do=")).collect();
    ensure!(listed.len() > DEATHS.len(), "{list}");
    let is_tried = |way: &str| {
        let comes_back = all.contains(&format!("hostile: {way}: ok"));
        comes_back
            || DEATHS.iter().any(|(name, _)| *name == way)
            || way == SPINS
            || way == LOOPS
            || way == super::hot_plug::EJECTS
            || ANYTHING.contains(&way)
    };
    let missing: Vec<_> = listed.into_iter().filter(|way| !is_tried(way)).collect();
    ensure!(missing.is_empty(), "{missing:?} are not tried beside another guest:\n{all}");
    Ok(())
}

/// Ways that a guest does not survive, and the reason for which it is stopped unless it is reported by an exception.
const DEATHS: [(&str, &str); 5] = [
    ("execute-hole", "no memory"),
    ("tables-in-hole", "its page tables are at"),
    ("all-tables", "triple fault"),
    ("triple-fault", "triple fault"),
    ("hlt-cli", "halted with interrupts off"),
];
const SPINS: &str = "hang-cli";
/// Tests with an outcome that is the CPU's choice: QEMU's stays at an instruction that sets reserved bits of CR4.
const ANYTHING: [&str; 2] = ["noise", "cr4-junk"];
/// An endless debug exception.
const LOOPS: &str = "debug-loop";

fn guests_that_cannot_go_on_are_stopped_with_the_reason() -> Result<()> {
    let mut host = beside_good(&DEATHS.map(|(way, _)| (way, way)))?;
    for (way, reason) in DEATHS {
        host.guest_prints(way, "going")?;
        let found = ended_or_caught(&mut host, way)?;
        ensure!(found.contains(reason) || found == "caught", "{way}: {found:?}\n{}", host.seen);
    }
    is_untouched(&mut host)?;
    host.powers_off()
}

/// Returns why a guest was stopped; "caught" where it took an exception as the architecture states and ended by itself.
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
    let spins = Guest { hung_s: 0, ..tiny("spins", "hostile", &format!("do={SPINS}"))? };
    let mut host = Recipe::new().cpus(2).linux(GOOD, "heartbeat:50")?.guest(spins).start()?;
    host.guest_prints("spins", "going")?;
    host.beats(GOOD, 10)?;
    ensure!(host.vm("spins")?.state == VmState::Running, "{}", host.seen);
    for _ in 0..2 {
        host.order(RequestBody::VmPause { name: "spins".into() })?;
        host.state("spins", VmState::Paused)?;
        host.order(RequestBody::VmResume { name: "spins".into() })?;
        host.state("spins", VmState::Running)?;
    }
    host.order(RequestBody::VmReset { name: "spins".into() })?;
    host.guest_prints("spins", "going")?;
    host.order(RequestBody::VmStop { name: "spins".into() })?;
    host.event(&EventKind::VmStopped { name: "spins".into(), reason: "stopped by the operator".into() })?;
    is_untouched(&mut host)?;
    host.powers_off()
}

/// A guest with an unpredictable end is paused, or has ended.
fn pause_if_it_runs(host: &mut Host, name: &str) -> Result<()> {
    match host.client()?.order(RequestBody::VmPause { name: name.to_owned() }) {
        Ok(()) => host.state(name, VmState::Paused).map(drop),
        Err(error) => {
            let state = host.vm(name)?.state;
            ensure!(!matches!(state, VmState::Running), "{name} is {state}: {error}");
            Ok(())
        }
    }
}

/// Some may do anything; whatever that is, each is stopped by itself or can be stopped. The other executes no
/// instruction any more: each debug exception is an exit, and so it runs, and can be stopped.
fn guests_of_noise_and_of_endless_debug_exceptions_are_contained() -> Result<()> {
    const MANY_EXITS: u64 = 1000;
    let mut recipe = Recipe::new().cpus(4).linux(GOOD, "heartbeat:50")?;
    recipe = recipe.guest(Guest { hung_s: 0, ..tiny(LOOPS, "hostile", &format!("do={LOOPS}"))? });
    for way in ANYTHING {
        recipe = recipe.hostile(way, way)?;
    }
    let mut host = recipe.start()?;
    // They share one core of this machine with Linux, which is to be up soon.
    for way in [LOOPS].into_iter().chain(ANYTHING) {
        host.guest_prints(way, "going")?;
        pause_if_it_runs(&mut host, way)?;
    }
    host.greets(GOOD)?;
    for way in [LOOPS].into_iter().chain(ANYTHING) {
        if host.vm(way)?.state == VmState::Paused {
            host.order(RequestBody::VmResume { name: way.into() })?;
        }
    }
    let before = host.vm(LOOPS)?.exits_total;
    host.beats(GOOD, 20)?;
    let loops = host.vm(LOOPS)?;
    ensure!(loops.state == VmState::Running, "{loops:?}\n{}", host.seen);
    ensure!(loops.exits_total > before + MANY_EXITS, "its exceptions are no exits: {loops:?}");
    for way in [LOOPS].into_iter().chain(ANYTHING) {
        if matches!(host.vm(way)?.state, VmState::Running | VmState::Panicked) {
            host.order(RequestBody::VmStop { name: way.into() })?;
            host.state(way, VmState::Stopped)?;
        }
    }
    is_untouched(&mut host)?;
    host.powers_off()
}

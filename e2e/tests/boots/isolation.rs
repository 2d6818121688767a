// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests that share CPUs and, one after the other, memory: each has its registers to itself, and none finds what
//! another left. The guest is `keeper` (`guests/README.md`).

use anyhow::{Result, ensure};
use baton::config::Guest;
use e2e::host::Host;
use e2e::recipe::{Recipe, tiny};
use wire::{EventKind, RequestBody, VmState};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("guests_that_share_a_cpu_keep_their_registers", guests_that_share_a_cpu_keep_their_registers),
    ("a_guest_that_is_paused_finds_its_registers_again", a_guest_that_is_paused_finds_its_registers_again),
    ("a_guest_finds_nothing_of_the_guest_before_it", a_guest_finds_nothing_of_the_guest_before_it),
    ("a_guest_finds_nothing_of_the_guest_beside_it", a_guest_finds_nothing_of_the_guest_beside_it),
    ("a_guest_that_is_reset_finds_nothing_of_its_own", a_guest_that_is_reset_finds_nothing_of_its_own),
];

/// Code that a test guest writes to its debug-exit port on success.
const RIGHT: u32 = 0x10;
/// Number of times that guests follow each other.
const TURNS: usize = 4;

fn keeper(name: &str, seed: u32, ways: &str) -> Result<Guest> {
    tiny(name, "keeper", &format!("seed={seed} do={ways}"))
}

/// Waits until a guest has done one of its ways, and sees that it had no complaint.
fn does(host: &mut Host, name: &str, way: &str) -> Result<()> {
    host.guest_prints(name, &format!("keeper: {way}: "))?;
    host.guest_prints(name, "\n")?;
    has_no_complaint(host, name)
}

fn has_no_complaint(host: &Host, name: &str) -> Result<()> {
    ensure!(!host.seen.console(name).contains("WRONG"), "{name}:\n{}", host.seen);
    Ok(())
}

/// Waits until a guest has ended, and sees that it had no complaint.
fn ends_well(host: &mut Host, name: &str) -> Result<()> {
    host.state(name, VmState::Stopped)?;
    has_no_complaint(host, name)?;
    host.event(&EventKind::VmDebugExit { name: name.to_owned(), code: RIGHT })
}

fn start(host: &mut Host, name: &str) -> Result<()> {
    host.order(RequestBody::VmStart { name: name.to_owned() })
}

const SHARING: [&str; 3] = ["a", "b", "c"];

/// A host of so many CPUs, and three guests that watch their registers.
fn three_that_hold(cpus: u32) -> Result<Host> {
    let recipe = Recipe::new().cpus(cpus);
    let recipe = SHARING
        .iter()
        .zip(1..)
        .try_fold(recipe, |recipe, (name, seed)| anyhow::Ok(recipe.guest(keeper(name, seed, "registers")?)))?;
    recipe.start()
}

fn guests_that_share_a_cpu_keep_their_registers() -> Result<()> {
    let mut host = three_that_hold(1)?;
    for name in SHARING {
        ends_well(&mut host, name)?;
    }
    host.powers_off()
}

fn a_guest_that_is_paused_finds_its_registers_again() -> Result<()> {
    let mut host = three_that_hold(2)?;
    for _ in 0..TURNS {
        host.order(RequestBody::VmPause { name: "a".into() })?;
        host.state("a", VmState::Paused)?;
        host.wait_a_moment()?;
        host.order(RequestBody::VmResume { name: "a".into() })?;
        host.state("a", VmState::Running)?;
    }
    for name in SHARING {
        ends_well(&mut host, name)?;
    }
    host.powers_off()
}

/// Two guests follow each other on one CPU. Each reads memory first, and then fills everything.
fn a_guest_finds_nothing_of_the_guest_before_it() -> Result<()> {
    let waiting = |name, seed| anyhow::Ok(Guest { autostart: false, ..keeper(name, seed, "fresh,stain")? });
    let mut host = Recipe::new().cpus(1).guest(waiting("a", 1)?).guest(waiting("b", 2)?).start()?;
    for _ in 0..TURNS {
        for name in ["a", "b"] {
            start(&mut host, name)?;
            does(&mut host, name, "fresh")?;
            does(&mut host, name, "stain")?;
            ends_well(&mut host, name)?;
        }
    }
    host.powers_off()
}

/// One guest has filled everything and sleeps; another starts on its CPU.
fn a_guest_finds_nothing_of_the_guest_beside_it() -> Result<()> {
    let beside = Guest { autostart: false, ..keeper("beside", 2, "fresh,stain")? };
    let mut host = Recipe::new().cpus(1).guest(keeper("stays", 1, "stain,registers,wait")?).guest(beside).start()?;
    does(&mut host, "stays", "stain")?;
    for _ in 0..TURNS {
        start(&mut host, "beside")?;
        does(&mut host, "beside", "fresh")?;
        ends_well(&mut host, "beside")?;
    }
    does(&mut host, "stays", "registers")?;
    does(&mut host, "stays", "wait")?;
    host.powers_off()
}

fn a_guest_that_is_reset_finds_nothing_of_its_own() -> Result<()> {
    let mut host = Recipe::new().cpus(1).guest(keeper("again", 1, "fresh,stain,wait")?).start()?;
    for _ in 0..TURNS {
        does(&mut host, "again", "fresh")?;
        does(&mut host, "again", "wait")?;
        host.order(RequestBody::VmReset { name: "again".into() })?;
    }
    does(&mut host, "again", "fresh")?;
    host.powers_off()
}

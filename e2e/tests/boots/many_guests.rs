// SPDX-License-Identifier: MIT OR Apache-2.0
//! As many guests as a host takes, and one more.

use std::time::Duration;

use anyhow::{Result, ensure};
use baton::config::Guest;
use bundle::limits;
use e2e::host::Host;
use e2e::recipe::{Recipe, tiny};
use wire::{RequestBody, VmState};

use super::Rule;
use super::update::update;

pub const RULES: &[Rule] = &[("one_guest_too_many_is_refused_with_the_limit", one_guest_too_many_is_refused)];

pub const LONG_RULES: &[Rule] = &[
    ("sixty_four_guests_start_fresh_and_go_on_over_an_update", sixty_four_guests),
    ("what_a_cpu_does_not_hold_fails_alone_and_is_named", a_cpu_that_is_full_is_named),
];

/// Sixty-four guests that take turns on eight CPUs of an emulator's one thread.
const LIMIT: Duration = Duration::from_secs(300);

/// A host of so many guests, each of which checks that it is fresh, and then beats every other second: more lines from
/// all of them would not fit the control channel.
fn crowded(guests: usize) -> Result<Recipe> {
    let recipe = Recipe::new().cpus(8).memory_mib(2048).options("tsc=skip");
    (0..guests).try_fold(recipe, |recipe, at| {
        let guest = tiny(&name(at), "keeper", &format!("seed={} do=fresh,stain,beat every=40", at + 1))?;
        // With 64 of them on eight CPUs, one may wait for its turn for as long as a hanging one is given.
        Ok(recipe.guest(Guest { hung_s: 0, ..guest }))
    })
}

fn name(at: usize) -> String {
    format!("guest-{at}")
}

fn one_guest_too_many_is_refused() -> Result<()> {
    crowded(limits::GUESTS)?.bundle()?;
    let error = format!("{:#}", crowded(limits::GUESTS + 1)?.bundle().err().unwrap_or_else(|| anyhow::anyhow!("none")));
    ensure!(error.contains(&format!("more than {} guests", limits::GUESTS)), "{error}");
    Ok(())
}

fn sixty_four_guests() -> Result<()> {
    let mut host = crowded(limits::GUESTS)?.start()?;
    host.limit(LIMIT);
    all_beat(&mut host, 2)?;
    for at in 0..limits::GUESTS {
        let console = host.seen.console(&name(at));
        ensure!(console.contains("keeper: fresh: ok") && !console.contains("WRONG"), "{}:\n{console}", name(at));
    }
    update(&mut host)?;
    ensure!(host.client()?.info()?.generation == 2, "{}", host.seen);
    all_beat(&mut host, 2)?;
    for at in 0..limits::GUESTS {
        host.seen.no_heartbeat_is_missing(&name(at))?;
        host.order(RequestBody::VmStop { name: name(at) })?;
        host.state(&name(at), VmState::Stopped)?;
    }
    host.powers_off()
}

/// Waits until each guest has beaten so often from now on.
fn all_beat(host: &mut Host, count: usize) -> Result<()> {
    let wanted: Vec<_> =
        (0..limits::GUESTS).map(|at| (name(at), host.seen.heartbeats(&name(at)).len() + count)).collect();
    let have =
        |seen: &e2e::transcript::Transcript, (name, count): &(String, usize)| seen.heartbeats(name).len() >= *count;
    host.wait("heartbeats of every guest", |seen| wanted.iter().all(|wanted| have(seen, wanted)))
}

/// On one CPU; each guest beyond what it holds fails with the reason.
fn a_cpu_that_is_full_is_named() -> Result<()> {
    // Each vCPU of a CPU has an ASID of its own, and QEMU's CPUs have 16, of which 0 is the host's.
    const HELD: usize = 15;
    let mut host = crowded(limits::GUESTS)?.cpus(1).start()?;
    host.limit(LIMIT);
    let last = name(limits::GUESTS - 1);
    let reason = host.failure(&last)?;
    let expected = "each CPU that is online holds as many vCPUs as it can: give the host more";
    ensure!(reason == expected, "{reason}");
    let vms = host.client()?.vms()?;
    let (running, others): (Vec<_>, Vec<_>) = vms.into_iter().partition(|vm| vm.state == VmState::Running);
    ensure!(running.len() == HELD && others.len() == limits::GUESTS - HELD, "{running:#?} {others:#?}");
    ensure!(others.iter().all(|vm| vm.reason.as_deref() == Some(expected)), "{others:#?}");
    for vm in running {
        host.beats(&vm.name, 1)?;
    }
    host.powers_off()
}

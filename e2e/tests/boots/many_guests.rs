// SPDX-License-Identifier: MIT OR Apache-2.0
//! As many guests as a host takes, and one more.

use std::time::Duration;

use anyhow::{Result, ensure};
use baton::config::Guest;
use baton::size::Size;
use bundle::{SmbiosConfig, limits};
use e2e::host::Host;
use e2e::recipe::{Recipe, tiny};
use wire::{RequestBody, VmState};

use super::Rule;
use super::update::update;

pub const RULES: &[Rule] = &[
    ("one_guest_too_many_is_refused_with_the_limit", one_guest_too_many_is_refused),
    ("the_heap_grows_with_what_guests_have_across_updates", the_heap_grows),
    ("guests_leave_memory_to_the_host", guests_leave_memory),
];

pub const LONG_RULES: &[Rule] = &[
    ("sixty_four_guests_start_fresh_and_go_on_over_an_update", sixty_four_guests),
    ("what_a_cpu_does_not_hold_fails_alone_and_is_named", a_cpu_that_is_full_is_named),
];

const RUNNING: &str = "running";
/// More than the host has of its own with a heap of its first size.
const HEAP_GROWN_BYTES: u64 = 8 << 20;
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

/// The host keeps more of these guests, which do not run, than its heap holds at first.
fn the_heap_grows() -> Result<()> {
    let smbios = SmbiosConfig::new(None, None, ["s".repeat(limits::OEM_STRING_BYTES).as_str(); 2]);
    let cmdline = "c".repeat(limits::CMDLINE_BYTES);
    let recipe = (1..limits::GUESTS).try_fold(Recipe::new().cpus(2).beating(RUNNING)?, |recipe, at| {
        let (smbios, cmdline) = (smbios.clone(), cmdline.clone());
        anyhow::Ok(recipe.guest(Guest { autostart: false, smbios, cmdline, ..tiny(&name(at), "keeper", "")? }))
    })?;
    let mut host = recipe.start()?;
    for generation in 2..4 {
        host.beats(RUNNING, 3)?;
        host.client()?.config()?;
        host.update_to(generation)?;
    }
    host.beats(RUNNING, 3)?;
    let info = host.client()?.info()?;
    ensure!(info.host_overhead_bytes > HEAP_GROWN_BYTES, "{info:?}");
    host.powers_off()
}

/// The last guest does not fit, though there is memory; the host and the others go on, and the host is updated.
fn guests_leave_memory() -> Result<()> {
    /// In MiB: what they leave is less than the smallest of them, and what is the host's.
    const SIZES: [u64; 20] = [32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 16, 16, 8, 8, 2, 2, 2, 2, 2, 2];
    let guest = |name: &str, mebibytes| -> Result<Guest> {
        Ok(Guest { memory: Size::mebibytes(mebibytes), ..tiny(name, "keeper", "do=beat every=10")? })
    };
    let recipe = Recipe { memory: Size::mebibytes(512), ..Recipe::new().cpus(2) }.guest(guest(RUNNING, 128)?);
    let recipe = SIZES
        .into_iter()
        .enumerate()
        .try_fold(recipe, |recipe, (at, mebibytes)| anyhow::Ok(recipe.guest(guest(&name(at), mebibytes)?)))?;
    let mut host = recipe.start()?;
    host.logs(&["the host has", "in one piece"])?;
    host.beats(RUNNING, 3)?;
    while host.client()?.vms()?.iter().any(|vm| matches!(vm.state, VmState::Loading)) {
        host.wait_a_moment()?;
    }
    let (info, vms) = (host.client()?.info()?, host.client()?.vms()?);
    ensure!(vms.iter().any(|vm| vm.state == VmState::Failed), "all have fitted: {info:?}");
    // 1/64 of all memory, and what a piece of 2 MiB does not fit into.
    ensure!((6 << 20..24 << 20).contains(&info.memory_free_bytes), "{info:?}");
    host.beats(RUNNING, 3)?;
    host.powers_off()
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

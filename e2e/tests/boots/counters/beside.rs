// SPDX-License-Identifier: MIT OR Apache-2.0
//! Users of counters beside each other on one CPU: guests, good and bad ones, and the host.
//!
//! The time stamp counter counts instructions here, so that no figure is the luck of a loaded machine.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use baton::config::Guest;
use bundle::{OnPanic, Pmu};
use e2e::host::Host;
use e2e::place::Emulator;
use e2e::recipe::{Recipe, tiny};
use wire::{CpuPerf, EventKind, ExitKind, RequestBody, VcpuPerf, VmState};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("two_guests_and_the_host_count_at_once_and_agree", two_guests_and_the_host_count_at_once),
    ("the_hosts_counters_follow_guests_that_move_stop_and_are_paused", counters_follow_guests),
    ("beside_one_that_spins_a_guest_has_its_share", || {
        neighbour_has_its_share(for_ever("other", Pmu::Off, "hang-cli")?, "going")
    }),
    ("beside_a_storm_of_writes_a_guest_has_its_share", || beside_a_storm(Pmu::Intel, "storm-writes")),
    ("beside_one_that_always_sets_its_timer_a_guest_has_its_share", || beside_a_storm(Pmu::Intel, "storm-alarms")),
    ("beside_overflows_at_each_instruction_a_guest_has_its_share", || beside_a_storm(Pmu::Amd, "storm-overflows")),
    ("beside_overflows_that_are_masked_for_ever_a_guest_has_its_share", || beside_a_storm(Pmu::Intel, "storm-masked")),
];

/// Length in instructions for which neighbours are watched: some thirty turns of the scheduler.
const STRETCH: u64 = 100_000_000;
/// Length in instructions for which guests are watched that leave their CPU all the time.
const SHORT_STRETCH: u64 = 20_000_000;
/// A turn of one of two: so much later or sooner may a stretch begin or end for a neighbour.
const SLICE: u64 = 3_100_000;
/// Time without a question: shorter than the host keeps counters that no client asks for.
const SILENCE: Duration = Duration::from_secs(2);
/// Instructions of a CPUID in the guest, with its loop and with the CPU's own part of the exit and the entry.
const GUEST_PER_EXIT: u64 = 40;
/// The host's instructions for it, at least.
const HOST_PER_EXIT: u64 = 250;

/// One CPU that counts instructions.
fn recipe(cpus: u32) -> Recipe {
    let emulator = if Emulator::Ten.is_here() { Emulator::Ten } else { Emulator::System };
    let recipe = Recipe { cpu: "max,-cx16,-x2apic", ..Recipe::new().on(emulator).cpus(cpus) };
    recipe.with(["-icount", "shift=0,sleep=off"].map(Into::into))
}

/// It runs for ever, whatever it resembles.
fn for_ever(name: &str, pmu: Pmu, does: &str) -> Result<Guest> {
    let program = if pmu == Pmu::Off { "hostile" } else { "counters" };
    let guest = tiny(name, program, &format!("do={does}"))?;
    Ok(Guest { pmu, on_panic: OnPanic::Ignore, hung_s: 0, ..guest })
}

/// The host's counters of a CPU, at least so many ticks after they were begun.
///
/// Each question costs the host some hundred thousand instructions, and the slower the emulator is, the fewer its
/// guests have between two of them: it is asked rarely.
fn counts_after(host: &mut Host, cpu: u32, ticks: u64) -> Result<CpuPerf> {
    loop {
        let counts = host.client()?.cpu_figures(cpu)?;
        if counts.ticks >= ticks {
            return Ok(counts);
        }
        for _ in 0..8 {
            host.wait_a_moment()?;
        }
    }
}

/// Every tick is the host's, idle, or some guest's.
fn nothing_is_lost(counts: &CpuPerf) -> Result<()> {
    let guests: u64 = counts.guests.iter().map(|guest| guest.ticks).sum();
    let all = counts.host_reference_cycles + counts.idle_ticks + counts.gone_ticks + guests;
    ensure!(all == counts.ticks && counts.host_cycles == counts.host_reference_cycles, "{all} of {counts:?}");
    Ok(())
}

fn guest_ticks(counts: &CpuPerf, guest: u32) -> Result<u64> {
    let found = counts.guests.iter().find(|found| found.guest == guest);
    found.map(|found| found.ticks).with_context(|| format!("guest {guest} is not there: {counts:?}"))
}

/// The guests' own counters are read between two samples of the host's, and around them: what they have counted
/// meanwhile is not more than the host reports that they ran, and not less.
fn two_guests_and_the_host_count_at_once() -> Result<()> {
    const NAMES: [&str; 2] = ["intel", "amd"];
    let guests = [for_ever(NAMES[0], Pmu::Intel, "count")?, for_ever(NAMES[1], Pmu::Amd, "count")?];
    let mut host = guests.into_iter().fold(recipe(1), Recipe::guest).start()?;
    for name in NAMES {
        host.guest_prints(name, "counters: count: going")?;
    }
    let outer = samples(&mut host, NAMES)?;
    let before = host.client()?.cpu_figures(0)?;
    let inner = samples(&mut host, NAMES)?;
    counts_after(&mut host, 0, before.ticks + SHORT_STRETCH)?;
    let inner = inner.into_iter().zip(samples(&mut host, NAMES)?);
    let after = host.client()?.cpu_figures(0)?;
    let outer = outer.into_iter().zip(samples(&mut host, NAMES)?);
    nothing_is_lost(&before)?;
    nothing_is_lost(&after)?;
    let mut exits = 0;
    for (guest, (inner, outer)) in (0..).zip(inner.zip(outer)) {
        let ran = guest_ticks(&after, guest)? - guest_ticks(&before, guest)?;
        let (at_least, at_most) = (counted(&inner)?, counted(&outer)?);
        ensure!(at_least > 0 && at_least <= ran && ran <= at_most, "{at_least} ≤ {ran} ≤ {at_most}: {after:?}");
        // Of what a CPUID takes, its own few instructions and nothing of the host's.
        let cpuids = cpuids(&inner.1) - cpuids(&inner.0);
        ensure!(cpuids > 1000 && at_least / cpuids <= GUEST_PER_EXIT, "{at_least} for {cpuids}: {inner:?}");
        exits += cpuids;
    }
    let hosts = after.host_cycles - before.host_cycles;
    ensure!(hosts >= exits * HOST_PER_EXIT, "{hosts} for {exits} exits: {before:?} {after:?}");
    ensure!(after.idle_ticks == before.idle_ticks, "both run all the time: {before:?} {after:?}");
    host.powers_off()
}

/// By the clock: where time is instructions, it leaps while no vCPU runs.
fn counters_follow_guests() -> Result<()> {
    let guests = [for_ever("first", Pmu::Off, "hang-cli")?, for_ever("second", Pmu::Off, "hang-cli")?];
    let mut host = guests.into_iter().fold(Recipe::new().cpus(2), Recipe::guest).start()?;
    for name in ["first", "second"] {
        host.guest_prints(name, "going")?;
    }
    for cpu in [0, 1] {
        nothing_is_lost(&counts_after(&mut host, cpu, SHORT_STRETCH)?)?;
    }
    host.order(RequestBody::CpuOffline { index: 1 })?;
    host.event(&EventKind::CpuOffline { index: 1 })?;
    // It reports that it goes before it is gone.
    let refusal = loop {
        match host.refusal(RequestBody::CpuPerf { index: 1 }) {
            Ok(refusal) => break refusal,
            Err(_) => host.wait_a_moment()?,
        }
    };
    ensure!(refusal.reason.contains("CPU 1 is not online"), "{refusal:?}");
    // Counters that no client has asked for meanwhile have begun again; so have these guests' ticks.
    let both = guests_grow(&mut host, 2)?;
    nothing_is_lost(&both)?;
    host.order(RequestBody::VmPause { name: "first".to_owned() })?;
    host.state("first", VmState::Paused)?;
    let paused = host.client()?.cpu_figures(0)?;
    let later = counts_after(&mut host, 0, paused.ticks + SHORT_STRETCH)?;
    nothing_is_lost(&later)?;
    ensure!(guest_ticks(&later, 0)? <= guest_ticks(&paused, 0)?, "it is paused: {paused:?} {later:?}");
    host.order(RequestBody::VmStop { name: "second".to_owned() })?;
    host.state("second", VmState::Stopped)?;
    let last = host.client()?.cpu_figures(0)?;
    nothing_is_lost(&last)?;
    ensure!(guest_ticks(&last, 1).is_err(), "it is not there any more: {last:?}");
    host.powers_off()
}

/// So many guests are on the first CPU, and each of them has run there.
fn guests_grow(host: &mut Host, count: u32) -> Result<CpuPerf> {
    loop {
        let counts = host.client()?.cpu_figures(0)?;
        if (0..count).all(|guest| guest_ticks(&counts, guest).is_ok_and(|ticks| ticks > 0)) {
            return Ok(counts);
        }
        host.wait_a_moment()?;
    }
}

fn samples(host: &mut Host, names: [&str; 2]) -> Result<Vec<VcpuPerf>> {
    names.iter().map(|name| host.client()?.figures(name, 0)).collect()
}

/// Returns what a guest's counter has counted between two samples.
fn counted((before, after): &(VcpuPerf, VcpuPerf)) -> Result<u64> {
    let value = |perf: &VcpuPerf| perf.counters.first().map(|counter| counter.value).context("it has no counter");
    Ok(value(after)? - value(before)?)
}

fn cpuids(perf: &VcpuPerf) -> u64 {
    perf.exits.iter().filter(|exit| exit.kind == ExitKind::Cpuid).map(|exit| exit.count).sum()
}

fn beside_a_storm(pmu: Pmu, way: &str) -> Result<()> {
    neighbour_has_its_share(for_ever("other", pmu, way)?, &format!("counters: {way}: going"))
}

/// A guest that only computes gets what is its own, whatever the other one does with its counters.
fn neighbour_has_its_share(other: Guest, text: &str) -> Result<()> {
    let good = tiny("good", "counters", "do=compute")?;
    let good = Guest { on_panic: OnPanic::Ignore, hung_s: 0, ..good };
    let mut host = recipe(1).guest(good).guest(other).start()?;
    host.limit(Duration::from_secs(240));
    host.guest_prints("good", "counters: compute: going")?;
    host.guest_prints("other", text)?;
    // The host's work for what both have printed was charged to the one in whose turn it was done: the other one is
    // given that time first.
    let before = counts_after(&mut host, 0, SHORT_STRETCH)?;
    // Nothing comes for the host meanwhile that would end a guest's turn.
    host.listen(SILENCE);
    let first = host.client()?.cpu_figures(0)?;
    has_its_share(&before, &first)?;
    has_its_share(&before, &counts_after(&mut host, 0, before.ticks + STRETCH)?)?;
    host.powers_off()
}

/// The good guest has half of what both had, but for a turn at each end.
fn has_its_share(before: &CpuPerf, after: &CpuPerf) -> Result<()> {
    nothing_is_lost(after)?;
    let (ticks, all) = (guest_ticks(after, 0)? - guest_ticks(before, 0)?, after.ticks - before.ticks);
    ensure!(ticks * 2 + 2 * SLICE >= all - all / 50, "{ticks} of {all}: {before:?} {after:?}");
    Ok(())
}

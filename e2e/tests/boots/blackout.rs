// SPDX-License-Identifier: MIT OR Apache-2.0
//! A function's transfers that end in the blackout of an update, which a fault point stretches until the interrupt is
//! pending; and what is written to registers meanwhile. The control, without Baton: `assigned`, on the bare machine.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use baton::config::{Device, Guest, Iommu};
use bundle::AssignedConfig;
use e2e::host::{BOOT_LIMIT, Host};
use e2e::recipe::{Recipe, folder, tiny};
use lab::accesses;
use lab::blackouts::{Round, shortest_ns, was_pending};
use wire::{ReplyBody, RequestBody, UpdateBy};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("transfers_end_in_blackouts_without_a_write_behind_amds_iommu", || transfers_end_in_blackouts(Iommu::Amd)),
    ("transfers_end_in_blackouts_without_a_write_behind_intels_iommu", || transfers_end_in_blackouts(Iommu::Intel)),
    ("transfers_end_in_blackouts_that_are_rolled_back", transfers_end_in_blackouts_that_are_rolled_back),
];

const GUEST: &str = "edu";
/// Updates with a transfer that is to end in the blackout, and those that are tried: a blackout may begin right between
/// two transfers.
const UPDATES: usize = 3;
const MOST_UPDATES: u64 = 9;
const UPDATE: RequestBody = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };

fn start(iommu: Iommu, options: &str, trace: &Path) -> Result<Host> {
    let functions =
        vec![AssignedConfig { selector: "1234:11e8".to_owned(), without_reset: true, gsi: None, virtual_functions: 0 }];
    let guest = Guest { functions, ..tiny(GUEST, "edu", "do=blackout")? };
    // With one CPU the image that takes over goes on with its own work only behind the guest's first instructions. The
    // emulator runs CPUs in turns: with two it may do so before the guest's has its turn, which the trace shows, too.
    let recipe = Recipe::new().cpus(1).with_devices(iommu, vec![Device::Edu]).with(accesses::arguments(trace));
    let mut host = recipe.options(options).with_fault_points().guest(guest).start()?;
    host.guest_prints(GUEST, "edu: blackout 0 ")?;
    Ok(host)
}

/// The guest's rounds so far, in order.
fn rounds(host: &mut Host) -> Vec<Round> {
    host.catch_up();
    let console = host.seen.console(GUEST);
    console.rsplit_once('\n').map_or("", |(lines, _)| lines).lines().filter_map(Round::of).collect()
}

/// The rounds behind the first `before`, once the one in which the last blackout ended is among them: a round is
/// printed in the next one.
fn rounds_behind(host: &mut Host, before: usize) -> Result<Vec<Round>> {
    let now = rounds(host).len();
    host.wait("three rounds of the guest's", |seen| seen.console(GUEST).matches("edu: blackout ").count() > now + 3)?;
    Ok(rounds(host).split_off(before))
}

fn transfers_end_in_blackouts(iommu: Iommu) -> Result<()> {
    let folder = folder()?;
    let trace = folder.path().join("trace");
    let mut host = start(iommu, "selftest=update:wait:interrupt", &trace)?;
    let tsc_hz = host.client()?.info()?.tsc_hz;
    let mut ended = 0;
    for generation in 2..2 + MOST_UPDATES {
        if ended == UPDATES {
            break;
        }
        let before = rounds(&mut host).len();
        let report = match host.client()?.request_within(BOOT_LIMIT, UPDATE)? {
            ReplyBody::Updated(report) if report.generation == generation => report,
            other => bail!("{other:?}"),
        };
        host.wait("the line about the blackout", |seen| of_blackout(&seen.host, generation).is_some())?;
        let was_pending = of_blackout(&host.seen.host, generation) == Some(true);
        let rounds = rounds_behind(&mut host, before)?;
        let is_within = rounds.iter().any(|round| round.ended_within(shortest_ns(&report), tsc_hz));
        ended += usize::from(was_pending && is_within);
    }
    ensure!(ended == UPDATES, "of {MOST_UPDATES} blackouts {ended} had the end of a transfer:\n{}", host.seen);
    nothing_is_wrong(&mut host)?;
    host.powers_off()?;
    nothing_was_written(&trace)
}

fn of_blackout(lines: &[String], generation: u64) -> Option<bool> {
    lines.iter().find_map(|line| was_pending(line, generation))
}

fn nothing_is_wrong(host: &mut Host) -> Result<()> {
    let last = rounds_behind(host, 0)?.pop();
    ensure!(last.is_some_and(|round| round.wrong == 0), "{last:?}:\n{}", host.seen);
    Ok(())
}

/// No register of an IOMMU or a device is written in these blackouts, and each kind of them is at other times.
fn nothing_was_written(trace: &Path) -> Result<()> {
    let file = File::open(trace).context("the emulator wrote no trace")?;
    let found = accesses::read(BufReader::new(file))?;
    ensure!(found.control().are_all_there(), "no control: {:?}", found.outside);
    let exact: Vec<_> = found.blackouts.iter().filter(|blackout| !blackout.has_guests_own).collect();
    // The guest's own writes right before or after a blackout may lie within the trace's window of it.
    ensure!(!exact.is_empty(), "{:#?}", found.blackouts);
    let has_no_counts = exact.iter().all(|blackout| blackout.counts().sum() == 0 && blackout.messages > 0);
    ensure!(has_no_counts, "{exact:#?}");
    Ok(())
}

/// The new image waits for the interrupt, and fails then: the guest has it in the old image.
fn transfers_end_in_blackouts_that_are_rolled_back() -> Result<()> {
    let folder = folder()?;
    let trace = folder.path().join("trace");
    let mut host = start(Iommu::Intel, "selftest=update:wait:interrupt,update:panic:meet", &trace)?;
    let tsc_hz = host.client()?.info()?.tsc_hz;
    let mut ended = 0;
    for _ in 0..MOST_UPDATES {
        if ended == UPDATES {
            break;
        }
        let before = rounds(&mut host).len();
        let refusal = host.refusal(UPDATE)?;
        let us = refusal.reason.split_once("rolled back after ").and_then(|(_, rest)| rest.split_once(" us"));
        let us: u64 = us.and_then(|(us, _)| us.parse().ok()).with_context(|| format!("{refusal:?}"))?;
        // From the order to stop: the guest's CPU comes a little later.
        let ns = us * 1000 / 2;
        ended += usize::from(rounds_behind(&mut host, before)?.iter().any(|round| round.ended_within(ns, tsc_hz)));
    }
    ensure!(ended == UPDATES, "of {MOST_UPDATES} blackouts {ended} had the end of a transfer:\n{}", host.seen);
    nothing_is_wrong(&mut host)?;
    ensure!(host.client()?.info()?.generation == 1, "{}", host.seen);
    host.powers_off()?;
    nothing_was_written(&trace)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's timeline: complete from the first instruction to the first guest instruction, and across restarts.

use anyhow::{Context as _, Result, bail, ensure};
use baton::timeline::host::{Known, OVERVIEW, runs};
use baton::timeline::{Run, Span};
use e2e::host::{BOOT_LIMIT, Host};
use e2e::recipe::{Recipe, tiny};
use wire::{EventKind, ReplyBody, RequestBody, UpdateBy, UpdateReport};

use super::{Rule, report};

pub const RULES: &[Rule] = &[
    ("a_boot_and_two_restarts_are_on_it", a_boot_and_two_restarts_are_on_it),
    ("an_update_is_on_it_on_each_cpu", an_update_is_on_it),
    ("an_update_that_was_rolled_back_is_on_it", an_update_that_was_rolled_back_is_on_it),
    ("a_host_without_guests_has_one_too", a_host_without_guests_has_one_too),
];

const GUEST: &str = "keeper";
const CPUS: u32 = 4;

fn runs_of(host: &mut Host) -> Result<Vec<Run>> {
    let pages = host.client()?.timeline()?;
    ensure!(pages.iter().all(|page| page.lost == 0), "records are gone: {pages:?}");
    Ok(runs(&pages, &Known { guests: vec![GUEST.to_owned()] }))
}

/// The only span, or moment, of this name on a track.
fn the<'a>(run: &'a Run, track: &str, name: &str) -> Result<&'a Span> {
    let found = run.tracks.iter().filter(|candidate| candidate.name == track).flat_map(|track| &track.spans);
    let found: Vec<&Span> = found.filter(|span| span.name == name).collect();
    match found[..] {
        [span] if span.note.is_none() => Ok(span),
        _ => bail!("{name:?} is {} times on {track} of {run:#?}", found.len()),
    }
}

fn restart(host: &mut Host) -> Result<()> {
    match host.client()?.request_within(BOOT_LIMIT, RequestBody::Restart)? {
        ReplyBody::Restarted(_) => Ok(()),
        other => bail!("not the answer to a restart: {other:?}"),
    }
}

fn a_boot_and_two_restarts_are_on_it() -> Result<()> {
    let recipe = Recipe::new().cpus(CPUS).options("tsc=measure").guest(tiny(GUEST, "keeper", "do=fresh,wait")?);
    let mut host = recipe.start()?;
    let starts = |host: &mut Host| host.event(&EventKind::VmStarted { name: GUEST.to_owned() });
    starts(&mut host)?;
    host.guest_prints(GUEST, "keeper: fresh: ok")?;
    for _ in 0..2 {
        restart(&mut host)?;
        starts(&mut host)?;
        host.guest_prints(GUEST, "keeper: fresh: ok")?;
    }
    let runs = runs_of(&mut host)?;
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    ensure!(names == ["boot", "restart to generation 2", "restart to generation 3"], "{names:?}");
    is_a_boot(&runs[0])?;
    runs[1..].iter().try_for_each(is_a_restart)?;
    host.powers_off()
}

/// Every step is there, in its order, and the whole is as long as from the first instruction to the guest's.
fn is_a_boot(run: &Run) -> Result<()> {
    let steps = [
        "entry, first page tables",
        "start info",
        "console",
        "ACPI tables",
        "frames",
        "page tables",
        "heap",
        "nodes, huge frames, records",
        "log rings",
        "local APIC, own tables",
        "clock calibration",
        "stacks and tables of the others (3)",
        "interrupt controllers",
        "virtualization",
        "bundle",
        "wait for the others",
        "guests' places (1)",
        "host ready",
        "first guest instruction: keeper",
    ];
    let spans = steps.iter().map(|step| the(run, "CPU 0", step)).collect::<Result<Vec<&Span>>>()?;
    let ends = |pair: &[&Span]| pair[0].start_us + pair[0].length_us <= pair[1].start_us + 1e-3;
    ensure!(spans.windows(2).all(ends), "the steps overlap: {spans:#?}");
    let whole = the(run, OVERVIEW, "first instruction to first guest instruction")?;
    let last = spans.last().context("steps")?;
    ensure!(whole.start_us == 0.0 && (whole.length_us - last.start_us).abs() < 1e-3, "{whole:?}, {last:?}");
    for cpu in 1..CPUS {
        for step in ["wake-up", "initialisation", "clock compared", "going online"] {
            the(run, &format!("CPU {cpu}"), step)?;
        }
    }
    Ok(())
}

/// The blackout is on the picture of each CPU: the boot CPU's switch pages, and the others parked from one image to
/// the next.
fn is_a_restart(run: &Run) -> Result<()> {
    let blackout = the(run, OVERVIEW, "no guest runs")?;
    let inside = |span: &Span| {
        blackout.start_us <= span.start_us
            && span.start_us + span.length_us <= blackout.start_us + blackout.length_us + 1e-3
    };
    let own =
        ["restart: others park", "restart: record written", "restart: switch", "page tables", "guest loaded: keeper"];
    for name in own {
        ensure!(inside(the(run, "CPU 0", name)?), "{name} is not in the blackout of {run:#?}");
    }
    for cpu in 1..CPUS {
        let track = format!("CPU {cpu}");
        let (parked, wake_up) = (the(run, &track, "parked")?, the(run, &track, "wake-up")?);
        ensure!(inside(parked) && parked.length_us > 0.0, "{parked:?} is not in {blackout:?}");
        ensure!(wake_up.start_us < parked.start_us + parked.length_us, "{wake_up:?} comes after {parked:?}");
    }
    Ok(())
}

/// Attempts, since a crowded machine may keep a CPU away for longer than an update waits.
const ATTEMPTS: u32 = 3;

fn updates(host: &mut Host) -> Result<UpdateReport> {
    for _ in 0..ATTEMPTS {
        let body = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };
        match host.client()?.request_within(BOOT_LIMIT, body) {
            Ok(ReplyBody::Updated(report)) => return Ok(report),
            Ok(other) => bail!("not the answer to an update: {other:?}"),
            Err(error) if format!("{error:#}").contains("waited too long") => {
                report::note_repeated(&format!("{error:#}"));
            }
            Err(error) => return Err(error),
        }
    }
    bail!("{ATTEMPTS} updates in a row waited too long for a CPU: {}", host.seen)
}

/// Each CPU's steps follow each other without a hole from when it left its guests until it is back, as long as
/// was reported.
fn an_update_is_on_it() -> Result<()> {
    let recipe = Recipe::new().options("tsc=skip").guest(tiny(GUEST, "keeper", "do=fresh,wait")?);
    let mut host = recipe.start()?;
    host.guest_prints(GUEST, "keeper: fresh: ok")?;
    let report = updates(&mut host)?;
    let runs = runs_of(&mut host)?;
    let run = runs.iter().find(|run| run.name == "update to generation 2").with_context(|| format!("{runs:#?}"))?;
    let steps = [
        "update: all stop, guests saved",
        "update: wait until all are saved",
        "update: to the new image",
        "update: guests restored",
        "update: wait until all are restored",
        "update: back to the guests",
    ];
    for cpu in &report.cpus {
        let track = format!("CPU {}", cpu.index);
        let blackout = the(run, &track, "update: blackout")?;
        let spans = steps.iter().map(|step| the(run, &track, step)).collect::<Result<Vec<&Span>>>()?;
        let joins = |pair: &[&Span]| (pair[0].start_us + pair[0].length_us - pair[1].start_us).abs() < 1e-3;
        ensure!(spans.windows(2).all(joins), "{spans:#?}");
        ensure!(
            (spans.iter().map(|span| span.length_us).sum::<f64>() - blackout.length_us).abs() < 1e-2,
            "{blackout:?} {spans:#?}"
        );
        let reported_us = (cpu.entered_ns - cpu.left_ns) as f64 / 1e3;
        ensure!((blackout.length_us - reported_us).abs() < 1.0, "{blackout:?}, but {reported_us} us were reported");
    }
    let prepared = the(run, "CPU 0", "update: new image prepares itself")?;
    let (blackout, still) = (the(run, "CPU 0", "update: blackout")?, the(run, OVERVIEW, "guests stand still")?);
    ensure!(prepared.start_us + prepared.length_us <= blackout.start_us + 1e-3, "{prepared:?} {blackout:?}");
    ensure!((still.length_us - report.blackout_ns as f64 / 1e3).abs() < 1.0, "{still:?} {report:?}");
    the(run, "CPU 0", "update: settled beside the guests")?;
    host.powers_off()
}

fn an_update_that_was_rolled_back_is_on_it() -> Result<()> {
    let recipe = Recipe::new().next_with_fault_points().options("tsc=skip selftest=update:panic:meet");
    let mut host = recipe.guest(tiny(GUEST, "keeper", "do=fresh,wait")?).start()?;
    host.guest_prints(GUEST, "keeper: fresh: ok")?;
    let refusal = host.refusal(RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle })?;
    ensure!(refusal.reason.contains("rolled back"), "{refusal:?}");
    let runs = runs_of(&mut host)?;
    ensure!(runs.len() == 1, "{runs:#?}");
    for cpu in 0..2 {
        let back = the(&runs[0], &format!("CPU {cpu}"), "update: blackout, rolled back")?;
        ensure!(back.length_us > 0.0, "{back:?}");
    }
    host.powers_off()
}

fn a_host_without_guests_has_one_too() -> Result<()> {
    let mut host = Recipe::new().cpus(1).start()?;
    host.is_ready()?;
    let runs = runs_of(&mut host)?;
    ensure!(runs.len() == 1 && runs[0].tracks.iter().all(|track| track.name != OVERVIEW), "{runs:#?}");
    the(&runs[0], "CPU 0", "host ready")?;
    host.powers_off()
}

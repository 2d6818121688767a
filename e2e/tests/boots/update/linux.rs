// SPDX-License-Identifier: MIT OR Apache-2.0
//! A Linux guest with all its CPUs busy goes through updates, and notices nothing but time.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use baton::config::Guest;
use baton::size::Size;
use e2e::dmesg;
use e2e::host::{BOOT_LIMIT, Host};
use e2e::place::Kernel;
use e2e::recipe::{Recipe, linux};
use wire::{RequestBody, UpdateBy};

use super::update;
use crate::Rule;

pub const RULES: &[Rule] = &[
    ("eight_busy_cpus_of_linux_notice_nothing", eight_busy_cpus_notice_nothing),
    ("the_blackout_is_stolen_time_to_a_busy_guest", the_blackout_is_stolen_time),
    ("a_blackout_that_is_rolled_back_is_stolen_time_too", a_blackout_that_is_rolled_back_is_stolen_time),
];

const NAME: &str = "eight";
const CPUS: u32 = 8;
const UPDATES: u64 = 3;

/// No clock goes back, no word is wrong, nothing stands still for good, and the kernel prints nothing that it had not
/// reported before.
fn eight_busy_cpus_notice_nothing() -> Result<()> {
    let guest = Guest { vcpus: CPUS, ..linux(NAME, Kernel::Default, "churn:500")? };
    let recipe = Recipe { memory: Size::mebibytes(1024), ..Recipe::new().options("tsc=skip").guest(guest) };
    let mut host = recipe.start()?;
    host.allow(BOOT_LIMIT + Duration::from_secs(60));
    host.guest_prints(NAME, &format!("CPUs        {CPUS} ("))?;
    churns_on(&mut host)?;
    let before = complaints(&host).len();
    for generation in 2..2 + UPDATES {
        let report = update(&mut host)?;
        ensure!(report.generation == generation, "{report:?}");
        host.allow(Duration::from_secs(60));
        churns_on(&mut host)?;
    }
    let complaints = complaints(&host);
    ensure!(complaints.len() == before, "the kernel complains: {complaints:#?}");
    host.powers_off()
}

/// Three more reports, in which nothing is wrong; and then as many as it takes until every thread has got further. The
/// guest's kernel may let one wait for seconds: four vCPUs share a CPU, which the next image takes half of meanwhile.
fn churns_on(host: &mut Host) -> Result<()> {
    let seen = reports(host).len();
    host.wait("three reports of the guest's", |seen_now| lines(&seen_now.console(NAME)).count() >= seen + 3)?;
    let slowest = |report: &str| number(report, "slowest").unwrap_or(0);
    let first = slowest(&reports(host)[seen]);
    host.wait("a report in which each thread has got further", |seen_now| {
        lines(&seen_now.console(NAME)).skip(seen).any(|report| slowest(report) > first)
    })?;
    for report in &reports(host)[seen..] {
        ensure!((number(report, "wrong")?, number(report, "backwards")?) == (0, 0), "{report}");
    }
    Ok(())
}

fn reports(host: &Host) -> Vec<String> {
    lines(&host.seen.console(NAME)).map(str::to_owned).collect()
}

/// Whole lines only: the end of one may be missing yet, and the kernel may write amid one.
fn lines(console: &str) -> impl Iterator<Item = &str> {
    let whole = console.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().filter(|line| line.starts_with("churn ") && !line.contains('['))
}

fn number(report: &str, name: &str) -> Result<u64> {
    let word = report.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    word.and_then(|word| word.parse().ok()).with_context(|| format!("no {name} in {report:?}"))
}

fn complaints(host: &Host) -> Vec<String> {
    dmesg::suspicious(&host.seen.console(NAME)).into_iter().map(str::to_owned).collect()
}

const BUSY: &str = "busy";
/// Linux's unit of stolen time, and the interval at which it reads it.
const TICK_MS: u64 = 10;

/// A guest with one CPU that always wants to run, with a shell.
fn busy_guest(recipe: Recipe) -> Result<Host> {
    let mut host = recipe.linux(BUSY, "shell")?.start()?;
    host.guest_prints(BUSY, "a shell; 'exit' ends it")?;
    host.guest_prints(BUSY, "# ")?;
    host.types(BUSY, "while :; do :; done &\n")?;
    Ok(host)
}

/// Returns what the guest's kernel reports was stolen. The answer's number is not in what is typed.
fn stolen_ms(host: &mut Host, question: u32) -> Result<u64> {
    host.types(BUSY, &format!("read a b c d e f g h i j < /proc/stat; echo answer {question} is $i.\n"))?;
    let words = format!("answer {question} is ");
    let stolen = |console: &str| {
        let answers = console.split(&words).skip(1).filter_map(|rest| rest.split_once('.'));
        answers.filter_map(|(number, _)| number.parse::<u64>().ok()).last()
    };
    host.wait("what was stolen", |seen| stolen(&seen.console(BUSY)).is_some())?;
    Ok(stolen(&host.seen.console(BUSY)).context("an answer")? * TICK_MS)
}

fn the_blackout_is_stolen_time() -> Result<()> {
    let mut host = busy_guest(Recipe::new().options("tsc=skip"))?;
    let before = stolen_ms(&mut host, 1)?;
    let blackout_ms = update(&mut host)?.blackout_ns / 1_000_000;
    let after = stolen_ms(&mut host, 2)?;
    ensure!(
        after + 2 * TICK_MS >= before + blackout_ms,
        "{before} ms and {blackout_ms} ms of a blackout, but {after} ms"
    );
    host.powers_off()
}

fn a_blackout_that_is_rolled_back_is_stolen_time() -> Result<()> {
    const LIMIT_MS: u64 = 700;
    let options = format!("tsc=skip update-limit={LIMIT_MS} selftest=update:hang:meet");
    let mut host = busy_guest(Recipe::new().next_with_fault_points().options(&options))?;
    let before = stolen_ms(&mut host, 1)?;
    let refusal = host.refusal(RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle })?;
    let after = stolen_ms(&mut host, 2)?;
    ensure!(after + 2 * TICK_MS >= before + LIMIT_MS, "{before} ms, then {refusal:?}, but {after} ms");
    host.powers_off()
}

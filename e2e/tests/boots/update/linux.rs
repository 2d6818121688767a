// SPDX-License-Identifier: MIT OR Apache-2.0
//! A Linux guest whose processors are all busy goes through updates, and notices nothing but time.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use baton::config::Guest;
use baton::size::Size;
use e2e::dmesg;
use e2e::host::{BOOT_LIMIT, Host};
use e2e::place::Kernel;
use e2e::recipe::{Recipe, linux};

use super::update;
use crate::Rule;

pub const RULES: &[Rule] = &[("eight_busy_processors_of_linux_notice_nothing", eight_busy_processors_notice_nothing)];

const NAME: &str = "eight";
const PROCESSORS: u32 = 8;
const UPDATES: u64 = 3;

/// No clock goes back, no word is wrong, nothing stands still for good, and the kernel says nothing that it had not said before.
fn eight_busy_processors_notice_nothing() -> Result<()> {
    let guest = Guest { vcpus: PROCESSORS, ..linux(NAME, Kernel::Default, "churn:500")? };
    let recipe = Recipe { memory: Size::mebibytes(1024), ..Recipe::new().options("tsc=skip").guest(guest) };
    let mut host = recipe.start()?;
    host.allow(BOOT_LIMIT + Duration::from_secs(60));
    host.guest_says(NAME, &format!("processors  {PROCESSORS} ("))?;
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

/// Three more reports, in which every processor has got further, and nothing is wrong.
fn churns_on(host: &mut Host) -> Result<()> {
    let seen = reports(host).len();
    host.wait("three reports of the guest's", |seen_now| lines(&seen_now.console(NAME)).count() >= seen + 3)?;
    let reports = reports(host);
    let (first, last) = (&reports[seen], reports.last().context("reports")?);
    for report in &reports[seen..] {
        ensure!((number(report, "wrong")?, number(report, "backwards")?) == (0, 0), "{report}");
    }
    ensure!(number(last, "slowest")? > number(first, "slowest")?, "a processor stands still: {first}, {last}");
    Ok(())
}

fn reports(host: &Host) -> Vec<String> {
    lines(&host.seen.console(NAME)).map(str::to_owned).collect()
}

/// Whole lines only.
fn lines(console: &str) -> impl Iterator<Item = &str> {
    let whole = console.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().filter(|line| line.starts_with("churn "))
}

fn number(report: &str, name: &str) -> Result<u64> {
    let word = report.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    word.and_then(|word| word.parse().ok()).with_context(|| format!("no {name} in {report:?}"))
}

fn complaints(host: &Host) -> Vec<String> {
    dmesg::suspicious(&host.seen.console(NAME)).into_iter().map(str::to_owned).collect()
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log's way to the console: a storm of it while guests run, a machine without a console, both policies.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use e2e::bare::BareHost;
use e2e::recipe::Recipe;
use wire::VmState;

use super::Rule;

pub const RULES: &[Rule] = &[
    ("a_storm_of_lines_arrives_whole_while_guests_run", a_storm_of_lines_arrives_whole_while_guests_run),
    ("byte_by_byte_the_storm_arrives_as_well", byte_by_byte_the_storm_arrives_as_well),
    ("both_policies_print_the_same_log", both_policies_print_the_same_log),
    ("a_host_without_com1_boots_on", a_host_without_com1_boots_on),
];

/// Lines of the storm.
const LINES: usize = 3600;
/// Records of something else that may be lost with them at most, such as that a guest has started.
const OTHERS: usize = 8;
/// Ends of its lines.
const ENDS: [&str; 6] = [
    "logical blocks: 1 GiB.",
    "mode sense: 73 00 10 08.",
    "DPO and FUA.",
    "preferred 512.",
    "the whole disk is used.",
    "of the same number.",
];

fn a_storm_of_lines_arrives_whole_while_guests_run() -> Result<()> {
    storm("fifo", 17)
}

fn byte_by_byte_the_storm_arrives_as_well() -> Result<()> {
    storm("byte", 2)
}

/// Logs the storm on two CPUs with a guest each. No stretch with interrupts off takes more accesses than one
/// fill.
fn storm(policy: &str, fill_accesses: u64) -> Result<()> {
    let options = format!("measure=log-storm console={policy}");
    let recipe = Recipe::new().cpus(2).options(&options);
    let mut host = recipe.beating("a")?.beating("b")?.start()?;
    host.logs(&["storm: over"])?;
    let mut seen = BTreeSet::new();
    for line in host.seen.host.iter().filter(|line| line.contains("storm: storm ")) {
        let number = whole(line).with_context(|| format!("a line is not whole: {line:?}"))?;
        ensure!(seen.insert(number), "line {number} came twice");
    }
    let lost = lost(&host.seen.host);
    let counted = seen.len() + lost;
    ensure!(
        (LINES..=LINES + OTHERS).contains(&counted),
        "{} lines came, {lost} are reported as lost, of {LINES}",
        seen.len()
    );
    let report = host.seen.host.iter().find(|line| line.contains("printing: ")).context("no report")?;
    let [bytes, _, _drops, _, accesses, _, _] = numbers(report.split_once("printing: ").context("a report")?.1)?;
    ensure!(bytes > 50 * seen.len() as u64, "{report}");
    ensure!((1..=fill_accesses).contains(&accesses), "{report}");
    for guest in ["a", "b"] {
        host.greets(guest)?;
        host.beats(guest, 5)?;
    }
    host.powers_off()
}

/// The number of a line that is complete: its beginning, its end, and nothing in between that belongs to another.
fn whole(line: &str) -> Option<usize> {
    let text = line.split_once("storm: storm ")?.1;
    let number: usize = text.split_once('/')?.0.parse().ok()?;
    let is_whole = text.ends_with(ENDS[number % ENDS.len()]) && !text.contains("cpu") && text.contains(": sd ");
    (number < LINES && is_whole).then_some(number)
}

/// Records that the console reports as lost: each such line gives their number.
fn lost(lines: &[String]) -> usize {
    let reported = lines.iter().filter(|line| line.contains(" lost") && !line.contains("storm: storm "));
    reported.filter_map(|line| line.split(' ').find_map(|word| word.parse::<usize>().ok())).sum()
}

fn numbers<const N: usize>(text: &str) -> Result<[u64; N]> {
    let found = text.split(|letter: char| !letter.is_ascii_digit()).filter_map(|digits| digits.parse().ok());
    <[u64; N]>::try_from(found.collect::<Vec<_>>()).ok().with_context(|| format!("{text:?} has not {N} numbers"))
}

fn both_policies_print_the_same_log() -> Result<()> {
    let (byte, fifo) = (log_of("byte")?, log_of("fifo")?);
    ensure!(byte == fifo, "{byte:#?}\nis not\n{fifo:#?}");
    Ok(())
}

/// Returns what a host without guests logs until it has ended, without times and rates. It does not probe PCI while it
/// is idle, which may or may not be done by then.
fn log_of(policy: &str) -> Result<Vec<String>> {
    let mut host = Recipe::new().cpus(1).options(&format!("console=ttyS0,{policy} pci=all")).start_with(None)?;
    host.is_ready()?;
    let _ = host.client()?.request(wire::RequestBody::PowerOff);
    host.ending()?;
    let without_numbers = |line: &String| line.chars().filter(|letter| !letter.is_ascii_digit()).collect();
    Ok(host.seen.host.iter().map(without_numbers).collect())
}

fn a_host_without_com1_boots_on() -> Result<()> {
    let mut host = BareHost::start_without_com1(&Recipe::new().beating("debian")?)?;
    ensure!(host.info()?.cpus == 2);
    let before = host.first_vm()?;
    ensure!(matches!(before.state, VmState::Loading | VmState::Running), "{before:?}");
    while host.first_vm()?.exits_total <= before.exits_total {
        ensure!(host.info()?.uptime_ns < 60_000_000_000, "its guest does not go on: {before:?}");
    }
    Ok(())
}

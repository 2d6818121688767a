// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's log: from every context, from all CPUs at once, and to the reader of it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use baton::client::Client;
use e2e::host::Host;
use e2e::recipe::Recipe;
use wire::{LogRecord, RequestBody, Stream, Subscription};

use super::Rule;

pub const RULES: &[Rule] = &[
    (
        "every_context_may_log_and_a_storm_is_counted_to_the_last",
        every_context_may_log_and_a_storm_is_counted_to_the_last,
    ),
    ("a_follower_misses_nothing", a_follower_misses_nothing),
    ("as_much_log_is_kept_as_the_operator_wants", as_much_log_is_kept_as_the_operator_wants),
];

const CPUS: u32 = 4;
const GUEST: &str = "guest";
/// Longest wait of a follower for a record.
const PATIENCE: Duration = Duration::from_secs(20);

/// The whole log, as `baton log` reads it.
fn whole_log(client: &mut Client) -> Result<Vec<LogRecord<'static>>> {
    let (mut log, mut place) = (Vec::new(), 0);
    loop {
        let (records, next) = client.log(place)?;
        if records.is_empty() {
            return Ok(log);
        }
        log.extend(records);
        place = next;
    }
}

/// Without guests, so that QEMU's threads have nothing to race for.
fn host_with(options: &str) -> Result<(Host, Client)> {
    let mut host = Recipe::new().with_fault_points().cpus(CPUS).concurrent().options(options).start_with(None)?;
    let client = host.client()?;
    Ok((host, client))
}

fn every_context_may_log_and_a_storm_is_counted_to_the_last() -> Result<()> {
    let (mut host, mut client) = host_with("selftest=log")?;
    // The boot CPU's last record of the storm, and after it everything it has to print.
    host.wait("the end of the storm", |seen| ends_of_storm(&seen.host).len() == CPUS as usize)?;
    let log = whole_log(&mut client)?;
    ensure!(log.is_sorted_by_key(|record| record.time_ns), "{log:#?}");
    for cpu in 0..CPUS {
        let own: Vec<_> = log.iter().filter(|record| record.cpu == cpu).collect();
        let first = own.first().context("each CPU has logged")?.sequence;
        ensure!(own.iter().zip(first..).all(|(record, number)| record.sequence == number), "a gap in {own:#?}");
        let end = own.iter().find(|record| record.text.starts_with("storm: ") && record.text.ends_with("this one"));
        let end = end.context("the storm ends with a record on each CPU")?;
        ensure!(end.text == format!("storm: {} records before this one", end.sequence), "{end:?}");
        // The lines printed and those counted as lost are together the lines written.
        let printed = printed_of(&host.seen.host, cpu, &end.text);
        ensure!(printed == end.sequence + 1, "{printed} of {} on CPU {cpu}:\n{}", end.sequence + 1, host.seen);
    }
    in_order(
        &host.seen.host,
        &[
            "log self-test: from the boot",
            "log self-test: while a record is formatted",
            "log self-test: and that record",
            "log self-test: from an interrupt",
            "log self-test: from NMI 0",
            "CPUs: 4 online",
        ],
    )
}

/// The lines with which CPUs end the storm.
fn ends_of_storm(lines: &[String]) -> Vec<&String> {
    lines.iter().filter(|line| line.ends_with("records before this one")).collect()
}

/// Records of a CPU that were printed or reported as lost, up to the line that ends in `last`.
fn printed_of(lines: &[String], cpu: u32, last: &str) -> u64 {
    let (name, lost) = (format!(" cpu{cpu} "), format!("cpu{cpu}: … "));
    let mut count = 0;
    for line in lines {
        if let Some(records) = line.strip_prefix(&lost).and_then(|rest| rest.split(' ').next()) {
            count += records.parse::<u64>().unwrap_or(0);
        } else if line.split_once(']').is_some_and(|(_, rest)| rest.starts_with(&name)) {
            count += 1;
            if line.ends_with(last) {
                break;
            }
        }
    }
    count
}

fn in_order(lines: &[String], expected: &[&str]) -> Result<()> {
    let mut lines_left = lines.iter();
    for part in expected {
        ensure!(lines_left.any(|line| line.contains(part)), "no {part:?} in its place in {lines:#?}");
    }
    Ok(())
}

fn a_follower_misses_nothing() -> Result<()> {
    const ROUNDS: usize = 30;
    let mut host = Recipe::new().beating(GUEST)?.start()?;
    host.beats(GUEST, 1)?;
    let mut follower = host.client()?;
    follower.subscribe(Subscription { log: true, ..Subscription::default() })?;
    let mut client = host.client()?;
    for _ in 0..ROUNDS {
        client.order(RequestBody::VmPause { name: GUEST.to_owned() })?;
        client.order(RequestBody::VmResume { name: GUEST.to_owned() })?;
    }
    let deadline = Instant::now() + PATIENCE;
    let (mut next, mut resumed) = (BTreeMap::<u32, u64>::new(), 0);
    while resumed < ROUNDS {
        let left = deadline.saturating_duration_since(Instant::now());
        let Some(Stream::Log(record)) = follower.next(left)? else { continue };
        let expected = next.entry(record.cpu).or_default();
        ensure!(record.sequence == *expected, "{record:?} is not number {expected}");
        *expected += 1;
        resumed += usize::from(record.text.ends_with("resumed"));
        ensure!(!left.is_zero(), "only {resumed} of {ROUNDS} came");
    }
    host.powers_off()
}

fn as_much_log_is_kept_as_the_operator_wants() -> Result<()> {
    // The log is read over the control channel: how fast it is printed does not matter here.
    let kept = |options: &str| -> Result<usize> {
        let (_host, mut client) = host_with(options)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let log = whole_log(&mut client)?;
            let ends = log.iter().filter(|record| record.text.ends_with("records before this one")).count();
            if ends == CPUS as usize {
                return Ok(log.iter().filter(|record| record.cpu == 1).count());
            }
            ensure!(Instant::now() < deadline, "{ends} of {CPUS} CPUs have come to the end of the storm");
        }
    };
    let (small, large) = (kept("selftest=log log-buffer=64,4")?, kept("selftest=log log-buffer=64,32")?);
    ensure!(small * 7 < large && large < small * 9, "{small} records in 4 KiB, {large} in 32 KiB");
    Ok(())
}

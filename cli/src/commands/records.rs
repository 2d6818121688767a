// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton log` and `baton events`: the records so far, and with `--follow` new ones as they come.
//!
//! Records are numbered without gaps, those of the log by each CPU. So a missing number is a record that was
//! overwritten before it was read, and one that comes a second time (in a page and in the stream) is not shown again.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;

use anyhow::{Result, bail};
use serde::Serialize;
use wire::{Event, Level, LogRecord, Stream, Subscription};

use super::{DONE, connect, seconds};
use crate::args::{LogArgs, RecordArgs, Target};
use crate::client::{Client, Closed, Previous};
use crate::clock;
use crate::output::output;

/// The time of one wait for the next record.
const WAIT: Duration = Duration::from_secs(3600);

/// A numbered record that can be shown.
trait Record: Serialize + Sized {
    fn sequence(&self) -> u64;
    /// Returns the counter that numbers it.
    fn counter(&self) -> u32 {
        0
    }
    /// Returns its level, if it has one.
    fn level(&self) -> Option<Level> {
        None
    }
    /// Returns its time, in nanoseconds since the host's boot.
    fn time_ns(&self) -> u64;
    /// Returns it for people, without its time.
    fn text(&self) -> String;
    fn page(client: &mut Client, from_sequence: u64) -> Result<(Vec<Self>, u64)>;
    fn of_stream(stream: Stream<'static>) -> Option<Self>;
}

impl Record for LogRecord<'static> {
    fn sequence(&self) -> u64 {
        self.sequence
    }

    fn counter(&self) -> u32 {
        self.cpu
    }

    fn level(&self) -> Option<Level> {
        Some(self.level)
    }

    fn time_ns(&self) -> u64 {
        self.time_ns
    }

    fn text(&self) -> String {
        format!("cpu{} {:<5} {}: {}", self.cpu, self.level, self.module, self.text)
    }

    fn page(client: &mut Client, from_sequence: u64) -> Result<(Vec<Self>, u64)> {
        client.log(from_sequence)
    }

    fn of_stream(stream: Stream<'static>) -> Option<Self> {
        if let Stream::Log(record) = stream { Some(record) } else { None }
    }
}

impl Record for Event {
    fn sequence(&self) -> u64 {
        self.sequence
    }

    fn time_ns(&self) -> u64 {
        self.time_ns
    }

    fn text(&self) -> String {
        self.kind.to_string()
    }

    fn page(client: &mut Client, from_sequence: u64) -> Result<(Vec<Self>, u64)> {
        client.events(from_sequence)
    }

    fn of_stream(stream: Stream<'static>) -> Option<Self> {
        if let Stream::Event(event) = stream { Some(event.into_owned()) } else { None }
    }
}

pub(super) fn log(target: &Target, args: &LogArgs) -> Result<u8> {
    if args.previous {
        return previous(target, &args.records, args.level);
    }
    let subscription = Subscription { log: true, ..Subscription::default() };
    show::<LogRecord<'static>>(target, &args.records, args.level, subscription)
}

/// Shows the remains of the host before this one: an epitaph after a panic, its log after a restart without
/// firmware.
fn previous(target: &Target, args: &RecordArgs, level: Option<Level>) -> Result<u8> {
    let mut client = connect(target)?;
    let Previous { lines, log_until_ns } = client.previous()?;
    if lines.is_empty() && log_until_ns.is_none() {
        eprintln!("the host before this one left nothing in memory: it did not panic, or the memory was not kept");
    }
    for line in lines {
        let text = if args.format.json { serde_json::json!({ "line": line }).to_string() } else { line };
        writeln!(output(), "{text}")?;
    }
    if let Some(until_ns) = log_until_ns {
        let mut printer = Printer::new(&mut client, args, level)?;
        show_all(&mut client, &mut printer, |record: &LogRecord<'static>| record.time_ns < until_ns)?;
    }
    Ok(DONE)
}

pub(super) fn events(target: &Target, args: &RecordArgs) -> Result<u8> {
    show::<Event>(target, args, None, Subscription { events: true, ..Subscription::default() })
}

fn show<R: Record>(target: &Target, args: &RecordArgs, level: Option<Level>, subscription: Subscription) -> Result<u8> {
    let mut client = connect(target)?;
    if args.follow {
        // Before the pages are read, so that nothing falls between the two.
        client.subscribe(subscription)?;
    }
    let mut printer = Printer::new(&mut client, args, level)?;
    show_all(&mut client, &mut printer, |_: &R| true)?;
    if args.follow { follow::<R>(&mut client, &mut printer) } else { Ok(DONE) }
}

/// Shows the records so far, up to the first that is not wanted.
fn show_all<R: Record>(client: &mut Client, printer: &mut Printer, is_wanted: impl Fn(&R) -> bool) -> Result<()> {
    let mut place = 0;
    loop {
        let (records, next) = R::page(client, place)?;
        for record in &records {
            if !is_wanted(record) {
                return Ok(());
            }
            printer.print(record)?;
        }
        if records.is_empty() || next <= place {
            return Ok(());
        }
        place = next;
    }
}

/// Shows new records until the operator interrupts it. The end of the host is an error, so that a following script
/// notices.
fn follow<R: Record>(client: &mut Client, printer: &mut Printer) -> Result<u8> {
    loop {
        let next = client.next(WAIT);
        if next.as_ref().is_err_and(|error| error.is::<Closed>()) {
            bail!("the host has ended, or its `baton up` has: nothing more comes; `baton up` shows how it ended");
        }
        if let Some(record) = next?.and_then(R::of_stream) {
            printer.print(&record)?;
        }
    }
}

/// Shows each record once, and how many are missing before it.
struct Printer {
    /// The least severe level that is shown.
    level: Option<Level>,
    json: bool,
    /// The host's boot, in milliseconds since 1970, if times of the wall clock are wanted.
    booted_ms: Option<u64>,
    /// The number expected next, by counter.
    next: BTreeMap<u32, u64>,
}

/// A record for programs.
#[derive(Serialize)]
struct Timed<'r, R> {
    #[serde(flatten)]
    record: &'r R,
    /// Its time by this machine's clock.
    time: String,
}

impl Printer {
    fn new(client: &mut Client, args: &RecordArgs, level: Option<Level>) -> Result<Self> {
        let json = args.format.json;
        let info = if args.time || json { Some(client.info()?) } else { None };
        let booted_ms = info.map(|info| clock::booted_ms(info.uptime_ns));
        Ok(Self { level, json, booted_ms, next: BTreeMap::new() })
    }

    fn shown(&self, record: &impl Record) -> Result<String> {
        let wall = self.booted_ms.map(|booted_ms| clock::since_boot(booted_ms, record.time_ns()));
        Ok(match (self.json, wall) {
            (true, Some(time)) => serde_json::to_string(&Timed { record, time })?,
            (true, None) => serde_json::to_string(record)?,
            (false, Some(time)) => format!("[{time}] {}", record.text()),
            (false, None) => format!("[{:>12.6}] {}", seconds(record.time_ns()), record.text()),
        })
    }

    fn print(&mut self, record: &impl Record) -> Result<()> {
        self.lines(record)?.iter().try_for_each(|line| writeln!(output(), "{line}"))?;
        Ok(())
    }

    fn lines(&mut self, record: &impl Record) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        let next = self.next.entry(record.counter()).or_default();
        if record.sequence() < *next {
            return Ok(lines);
        }
        let lost = record.sequence() - *next;
        *next = record.sequence() + 1;
        if lost > 0 {
            lines.push(self.loss(record, lost));
        }
        if record.level() <= self.level.or(record.level()) {
            lines.push(self.shown(record)?);
        }
        Ok(lines)
    }

    fn loss(&self, before: &impl Record, lost: u64) -> String {
        let records = if lost == 1 { "record" } else { "records" };
        match (self.json, before.level()) {
            (true, Some(_)) => serde_json::json!({ "lost": lost, "processor": before.counter() }).to_string(),
            (true, None) => serde_json::json!({ "lost": lost }).to_string(),
            (false, Some(_)) => format!("… {lost} {records} lost of cpu{}", before.counter()),
            (false, None) => format!("… {lost} {records} lost"),
        }
    }
}

#[cfg(test)]
mod tests {
    use wire::EventKind;

    use super::*;

    #[test]
    fn records_are_shown_for_people_and_for_programs() {
        let record = LogRecord {
            sequence: 7,
            time_ns: 1_500_000_000,
            cpu: 1,
            level: Level::Warn,
            module: "svm".into(),
            text: "no next-RIP save".into(),
        };
        let mut printer = Printer { level: None, json: false, booted_ms: None, next: BTreeMap::new() };
        assert_eq!(printer.shown(&record).expect("text"), "[    1.500000] cpu1 warn  svm: no next-RIP save");
        printer.booted_ms = Some(951_782_400_000);
        let expected = "[2000-02-29T00:00:01.500Z] cpu1 warn  svm: no next-RIP save";
        assert_eq!(printer.shown(&record).expect("text"), expected);
        let event = Event { sequence: 1, time_ns: 5, kind: EventKind::VmStarted { name: "a".to_owned() } };
        assert_eq!(event.text(), "a started");
        printer.json = true;
        let expected =
            r#"{"sequence":1,"time_ns":5,"kind":{"vm-started":{"name":"a"}},"time":"2000-02-29T00:00:00.000Z"}"#;
        assert_eq!(printer.shown(&event).expect("JSON"), expected);
    }

    fn record(cpu: u32, sequence: u64, level: Level) -> LogRecord<'static> {
        LogRecord { sequence, time_ns: 0, cpu, level, module: "m".into(), text: sequence.to_string().into() }
    }

    #[test]
    fn a_record_is_shown_once_and_missing_ones_before_it_are_counted() {
        let mut printer = Printer { level: None, json: false, booted_ms: None, next: BTreeMap::new() };
        let mut lines = |cpu, sequence| printer.lines(&record(cpu, sequence, Level::Info)).expect("lines");
        assert_eq!(lines(0, 0), ["[    0.000000] cpu0 info  m: 0"]);
        assert_eq!(lines(1, 2), ["… 2 records lost of cpu1", "[    0.000000] cpu1 info  m: 2"]);
        assert_eq!(lines(0, 1), ["[    0.000000] cpu0 info  m: 1"]);
        assert!(lines(1, 2).is_empty(), "it has been shown");
        assert_eq!(lines(0, 3)[0], "… 1 record lost of cpu0");
    }

    #[test]
    fn a_record_below_the_level_is_not_shown_but_not_lost_either() {
        let mut printer = Printer { level: Some(Level::Warn), json: true, booted_ms: None, next: BTreeMap::new() };
        let mut lines = |sequence, level| printer.lines(&record(0, sequence, level)).expect("lines").len();
        assert_eq!((lines(0, Level::Warn), lines(1, Level::Info), lines(2, Level::Error)), (1, 0, 1));
        assert_eq!(printer.lines(&record(0, 5, Level::Info)).expect("lines"), [r#"{"lost":2,"processor":0}"#]);
    }
}

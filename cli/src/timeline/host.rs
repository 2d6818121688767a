// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host's timeline as runs: one for each image that has run since the machine was powered on, a track for each
//! CPU.
//!
//! Begins and ends are matched by name and argument. A span without an end lasts to the end of the shown time, and one
//! without a beginning began with that time. The time between the last record of the old image and the first one of the
//! new image is on the new one's run: a restart is a picture of its own, from the moment at which it was asked for.

use timeline::{Argument, Kind, Name};
use wire::TimelinePage;

use super::{Run, Span, Track};

/// The track with a run's main parts.
pub const OVERVIEW: &str = "overview";

/// The span of an update in which its guests do not run.
const STILL: &str = "guests stand still";
/// The span before it.
const PREPARED: &str = "prepared while guests run";
/// The beginning of the name of an update's run; its generation follows.
const UPDATE: &str = "update to generation ";

/// Times of an update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpdateTimes {
    /// Images that had run with it since the machine was powered on.
    pub generation: u64,
    /// Microseconds in which it was prepared while guests ran.
    pub preparation_us: f64,
    /// Microseconds in which no guest ran.
    pub blackout_us: f64,
}

/// Returns the times of an update; `None` if the run is a boot or a restart.
pub fn update_of(run: &Run) -> Option<UpdateTimes> {
    let generation = run.name.strip_prefix(UPDATE)?.parse().ok()?;
    let overview = run.tracks.iter().find(|track| track.name == OVERVIEW)?;
    let length = |name: &str| Some(overview.spans.iter().find(|span| span.name == name)?.length_us);
    Some(UpdateTimes { generation, preparation_us: length(PREPARED)?, blackout_us: length(STILL)? })
}

/// Facts about a host besides its records.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The guests' names, in the bundle's order.
    pub guests: Vec<String>,
}

/// A record, its time in microseconds of the host's clock.
#[derive(Clone, Copy, Debug)]
struct Record {
    at_us: f64,
    kind: Kind,
    name: u16,
    argument: u32,
}

/// One CPU's records in the order of time.
struct Lane {
    cpu: u32,
    records: Vec<Record>,
    lost: u64,
}

/// Returns the runs that the pages show, oldest first: `boot`, `restart to generation 2`, `update to generation 3`, …
pub fn runs(pages: &[TimelinePage], known: &Known) -> Vec<Run> {
    let lanes = lanes(pages);
    let starts = starts(&lanes);
    let ends = starts.iter().skip(1).map(|start| start.at_us).chain([f64::INFINITY]);
    let bounds: Vec<(Start, f64)> = starts.iter().copied().zip(ends).collect();
    bounds.iter().map(|(start, end)| run(&lanes, *start, *end, known)).collect()
}

/// Returns an update's blackout alone: each CPU's spans from when the first one left its guests until the last one was
/// back.
pub fn blackout_of(run: &Run) -> Option<Run> {
    let overview = run.tracks.iter().find(|track| track.name == OVERVIEW)?;
    let blackout = overview.spans.iter().find(|span| span.name == STILL)?;
    let inside = |span: &&Span| {
        span.length_us > 0.0
            && span.start_us >= blackout.start_us
            && span.start_us + span.length_us <= blackout.start_us + blackout.length_us
            && span.name != Name::UpdateBlackout.text()
    };
    let short = |name: &str| name.strip_prefix("update: ").unwrap_or(name).to_owned();
    let shifted =
        |span: &Span| Span { name: short(&span.name), start_us: span.start_us - blackout.start_us, ..span.clone() };
    let track = |track: &Track| Track {
        name: track.name.clone(),
        spans: track.spans.iter().filter(inside).map(shifted).collect(),
    };
    let tracks = run.tracks.iter().filter(|track| track.name != OVERVIEW).map(track);
    Some(Run {
        name: format!("{}, the blackout", run.name),
        tracks: tracks.filter(|track| !track.spans.is_empty()).collect(),
    })
}

/// Start of a run, and its image.
#[derive(Clone, Copy, Debug)]
struct Start {
    at_us: f64,
    generation: u32,
}

fn lanes(pages: &[TimelinePage]) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = Vec::new();
    for page in pages {
        let to_us = |ticks: u64| ticks as f64 * 1e6 / page.ticks_per_second.max(1) as f64;
        let records = page.points.iter().filter_map(|point| {
            let kind = Kind::from_number(point.kind)?;
            Some(Record { at_us: to_us(point.ticks), kind, name: point.name, argument: point.argument })
        });
        match lanes.last_mut().filter(|lane| lane.cpu == page.cpu) {
            Some(lane) => {
                lane.records.extend(records);
                lane.lost += page.lost;
            }
            None => lanes.push(Lane { cpu: page.cpu, records: records.collect(), lost: page.lost }),
        }
    }
    lanes.retain(|lane| !lane.records.is_empty());
    // The order of records may differ from that of their times: stamps are also written afterwards. Equal ones stay
    // as they are.
    lanes.iter_mut().for_each(|lane| lane.records.sort_by(|a, b| a.at_us.total_cmp(&b.at_us)));
    lanes
}

/// Finds the starts of runs: of a boot the image's first instruction, of a restart the moment at which the old image
/// begins to stage the new one.
fn starts(lanes: &[Lane]) -> Vec<Start> {
    let boot = lanes.iter().flat_map(|lane| &lane.records);
    let entries: Vec<Record> =
        boot.clone().filter(|record| record.name == Name::FirstInstruction as u16).copied().collect();
    let staged = |generation: u32, entry: f64| {
        let stages = boot.clone().filter(|record| record.name == Name::Stage as u16 && record.kind == Kind::Begin);
        let stages = stages.filter(|record| record.argument == generation && record.at_us <= entry);
        stages.map(|record| record.at_us).fold(None, |last: Option<f64>, at| Some(last.map_or(at, |last| last.max(at))))
    };
    let mut starts: Vec<Start> = entries
        .iter()
        .map(|entry| Start {
            at_us: staged(entry.argument, entry.at_us).unwrap_or(entry.at_us),
            generation: entry.argument,
        })
        .collect();
    starts.sort_by(|a, b| a.at_us.total_cmp(&b.at_us));
    if starts.is_empty() {
        let first = boot.map(|record| record.at_us).fold(f64::INFINITY, f64::min);
        starts.extend(first.is_finite().then_some(Start { at_us: first, generation: 0 }));
    }
    starts
}

fn run(lanes: &[Lane], start: Start, end_us: f64, known: &Known) -> Run {
    let inside = |at: f64| (start.at_us..end_us).contains(&at);
    let last = lanes.iter().flat_map(|lane| &lane.records).map(|record| record.at_us).filter(|at| inside(*at));
    let last = last.fold(start.at_us, f64::max);
    let blackout = blackout(lanes, start.generation).filter(|(from, _)| inside(*from));
    let overview = blackout.map(|blackout| update_overview(start, blackout)).or_else(|| overview(lanes, start, last));
    let name = match start.generation {
        generation if blackout.is_some() => format!("{UPDATE}{generation}"),
        0 => "end of the timeline".to_owned(),
        1 => "boot".to_owned(),
        generation => format!("restart to generation {generation}"),
    };
    let tracks = lanes.iter().map(|lane| track(lane, start.at_us, last, known));
    let tracks = overview.into_iter().chain(tracks).filter(|track| !track.spans.is_empty());
    Run { name, tracks: tracks.collect() }
}

/// From the first CPU that left its guests in the update to this generation until the last one was back.
fn blackout(lanes: &[Lane], generation: u32) -> Option<(f64, f64)> {
    let is_blackout = |record: &&Record| (record.name, record.argument) == (Name::UpdateBlackout as u16, generation);
    let times = |kind: Kind| {
        let records = lanes.iter().flat_map(|lane| &lane.records).filter(is_blackout);
        records.filter(move |record| record.kind == kind).map(|record| record.at_us)
    };
    Some((times(Kind::Begin).min_by(f64::total_cmp)?, times(Kind::End).max_by(f64::total_cmp)?))
}

/// Returns the overview of an update: its main parts.
fn update_overview(start: Start, (from, to): (f64, f64)) -> Track {
    let span = |name: &str, from: f64, to: f64| Span {
        name: name.to_owned(),
        start_us: from - start.at_us,
        length_us: to - from,
        note: None,
    };
    let spans = vec![span(PREPARED, start.at_us, from), span(STILL, from, to)];
    Track { name: OVERVIEW.to_owned(), spans }
}

/// From the beginning to the first guest's first instruction, in the parts that matter: of a boot all of it, of a
/// restart the time before guests are stopped, and the time after.
fn overview(lanes: &[Lane], start: Start, end_us: f64) -> Option<Track> {
    let first = |name: Name| {
        let records = lanes.iter().flat_map(|lane| &lane.records).filter(|record| record.name == name as u16);
        let times = records.map(|record| record.at_us).filter(|at| (start.at_us..=end_us).contains(at));
        times.min_by(f64::total_cmp)
    };
    let guest = first(Name::FirstGuestInstruction)?;
    let span = |name: &str, from: f64, to: f64| Span {
        name: name.to_owned(),
        start_us: from - start.at_us,
        length_us: to - from,
        note: None,
    };
    let spans = match first(Name::GuestsStopped).filter(|stopped| *stopped < guest) {
        Some(stopped) => {
            vec![span(PREPARED, start.at_us, stopped), span("no guest runs", stopped, guest)]
        }
        None => vec![span("first instruction to first guest instruction", start.at_us, guest)],
    };
    Some(Track { name: OVERVIEW.to_owned(), spans })
}

/// Returns the spans of one CPU between two moments; those that cross them are cut there.
fn track(lane: &Lane, start_us: f64, end_us: f64, known: &Known) -> Track {
    let mut open: Vec<Record> = Vec::new();
    let mut spans: Vec<Span> = Vec::new();
    let mut add = |record: &Record, from: f64, to: f64, note: Option<&str>| {
        let (from, to) = (from.max(start_us), to.min(end_us));
        let is_instant = record.kind == Kind::Instant;
        if to > from || (to == from && (is_instant || from > start_us)) {
            let name = title(record, known);
            let (start_us, length_us) = (from - start_us, to - from);
            spans.push(Span { name, start_us, length_us, note: note.map(str::to_owned) });
        }
    };
    for record in &lane.records {
        let is_same = |other: &Record| (other.name, other.argument) == (record.name, record.argument);
        match record.kind {
            Kind::Begin => open.push(*record),
            Kind::Instant => add(record, record.at_us, record.at_us, None),
            Kind::End => match open.iter().rposition(is_same) {
                Some(place) => {
                    let begin = open.remove(place);
                    add(&begin, begin.at_us, record.at_us, None);
                }
                None if lane.lost > 0 => add(record, f64::NEG_INFINITY, record.at_us, Some("its beginning is lost")),
                None => {}
            },
        }
    }
    open.iter().for_each(|begin| add(begin, begin.at_us, f64::INFINITY, Some("it has not ended")));
    spans.retain(|span| span.start_us <= end_us - start_us);
    spans.sort_by(|a, b| a.start_us.total_cmp(&b.start_us).then(b.length_us.total_cmp(&a.length_us)));
    Track { name: format!("CPU {}", lane.cpu), spans }
}

/// Returns the name of a span or an instant; one that this release does not know has its number.
fn title(record: &Record, known: &Known) -> String {
    let Some(name) = Name::from_number(record.name) else {
        return format!("name {} ({})", record.name, record.argument);
    };
    match name.argument() {
        Argument::Guest => match known.guests.get(record.argument as usize) {
            Some(guest) => format!("{}: {guest}", name.text()),
            None => format!("{}: guest {}", name.text(), record.argument),
        },
        Argument::Count => format!("{} ({})", name.text(), record.argument),
        Argument::Nothing | Argument::Cpu | Argument::Generation => name.text().to_owned(),
    }
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;

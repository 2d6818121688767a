// SPDX-License-Identifier: MIT OR Apache-2.0
use wire::TimelinePoint;

use super::*;

const BEGIN: u8 = Kind::Begin as u8;
const END: u8 = Kind::End as u8;
const INSTANT: u8 = Kind::Instant as u8;

fn point(ticks: u64, kind: u8, name: Name, argument: u32) -> TimelinePoint {
    TimelinePoint { ticks, name: name as u16, kind, argument }
}

/// A page of a clock of one tick per microsecond.
fn page(cpu: u32, points: Vec<TimelinePoint>) -> TimelinePage {
    TimelinePage { cpu, ticks_per_second: 1_000_000, points, lost: 0, next: None }
}

fn known() -> Known {
    Known { guests: vec!["debian".to_owned()] }
}

/// Name, beginning and length of a run's spans on a track.
fn spans<'a>(run: &'a Run, track: &str) -> Vec<(&'a str, f64, f64)> {
    let track = run.tracks.iter().find(|candidate| candidate.name == track);
    track.map_or(Vec::new(), |track| {
        track.spans.iter().map(|span| (span.name.as_str(), span.start_us, span.length_us)).collect()
    })
}

#[test]
fn begins_and_ends_are_put_together_by_name_and_argument() {
    let points = vec![
        point(100, INSTANT, Name::FirstInstruction, 1),
        point(110, BEGIN, Name::GuestLoad, 0),
        point(120, BEGIN, Name::GuestLoad, 1),
        point(130, END, Name::GuestLoad, 0),
        point(150, END, Name::GuestLoad, 1),
    ];
    let runs = runs(&[page(0, points)], &known());
    assert_eq!(runs.len(), 1);
    assert_eq!(
        spans(&runs[0], "CPU 0"),
        [("first instruction", 0.0, 0.0), ("guest loaded: debian", 10.0, 20.0), ("guest loaded: guest 1", 20.0, 30.0)]
    );
}

#[test]
fn stamps_written_afterwards_lie_where_they_belong() {
    let points = vec![
        point(100, INSTANT, Name::FirstInstruction, 1),
        point(300, INSTANT, Name::HostReady, 1),
        point(120, BEGIN, Name::FirstSign, 2),
        point(140, END, Name::FirstSign, 2),
        point(140, BEGIN, Name::Initialisation, 2),
        point(140, END, Name::Initialisation, 2),
    ];
    let runs = runs(&[page(0, points)], &known());
    let expected = [
        ("first instruction", 0.0, 0.0),
        ("wake-up", 20.0, 20.0),
        ("initialisation", 40.0, 0.0),
        ("host ready", 200.0, 0.0),
    ];
    assert_eq!(spans(&runs[0], "CPU 0"), expected);
}

#[test]
fn a_restart_is_a_run_of_its_own_and_its_blackout_is_on_it() {
    let first = vec![
        point(0, INSTANT, Name::FirstInstruction, 1),
        point(50, INSTANT, Name::FirstGuestInstruction, 0),
        point(1000, BEGIN, Name::Stage, 2),
        point(1100, END, Name::Stage, 2),
        point(1200, INSTANT, Name::GuestsStopped, 2),
        point(1300, BEGIN, Name::SwitchPages, 2),
        point(1400, END, Name::SwitchPages, 2),
        point(1400, INSTANT, Name::FirstInstruction, 2),
        point(1700, INSTANT, Name::FirstGuestInstruction, 0),
    ];
    let second = vec![point(1250, BEGIN, Name::Parked, 1), point(1500, END, Name::Parked, 1)];
    let runs = runs(&[page(0, first), page(1, second)], &known());
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    assert_eq!(names, ["boot", "restart to generation 2"]);
    assert_eq!(spans(&runs[0], OVERVIEW), [("first instruction to first guest instruction", 0.0, 50.0)]);
    assert_eq!(spans(&runs[1], OVERVIEW), [("prepared while guests run", 0.0, 200.0), ("no guest runs", 200.0, 500.0)]);
    assert_eq!(spans(&runs[1], "CPU 1"), [("parked", 250.0, 250.0)]);
    assert!(spans(&runs[1], "CPU 0").contains(&("restart: switch", 300.0, 100.0)));
}

#[test]
fn a_span_that_is_cut_off_has_a_note() {
    let points =
        vec![point(10, END, Name::Park, 0), point(20, BEGIN, Name::Console, 0), point(50, INSTANT, Name::HostReady, 1)];
    let lossy = TimelinePage { lost: 3, ..page(0, points) };
    let runs = runs(&[lossy], &known());
    let track = &runs[0].tracks[0];
    let notes: Vec<_> = track.spans.iter().map(|span| (span.name.as_str(), span.note.as_deref())).collect();
    let expected = [("console", Some("it has not ended")), ("host ready", None)];
    assert_eq!(notes, expected, "the end of a span that began before the first record has no length");
    assert_eq!(runs[0].name, "end of the timeline");
}

#[test]
fn a_name_of_a_later_release_is_shown_by_its_number() {
    let strange = TimelinePoint { ticks: 7, name: 4000, kind: INSTANT, argument: 9 };
    let unreadable = TimelinePoint { kind: 0, ..strange };
    let runs = runs(&[page(0, vec![strange, unreadable])], &known());
    assert_eq!(spans(&runs[0], "CPU 0"), [("name 4000 (9)", 0.0, 0.0)]);
}

#[test]
fn a_host_that_has_recorded_nothing_has_no_run() {
    assert!(runs(&[page(0, Vec::new())], &known()).is_empty());
}

#[test]
fn an_update_is_a_run_of_its_own_with_a_blackout() {
    let blackout =
        |from, to| vec![point(from, BEGIN, Name::UpdateBlackout, 2), point(to, END, Name::UpdateBlackout, 2)];
    let mut first = vec![
        point(100, INSTANT, Name::FirstInstruction, 1),
        point(200, BEGIN, Name::Stage, 2),
        point(210, END, Name::Stage, 2),
        point(220, INSTANT, Name::FirstInstruction, 2),
    ];
    first.extend(blackout(310, 350));
    let runs = runs(&[page(0, first), page(1, blackout(300, 340))], &known());
    assert_eq!(runs.iter().map(|run| run.name.as_str()).collect::<Vec<_>>(), ["boot", "update to generation 2"]);
    assert_eq!(
        spans(&runs[1], OVERVIEW),
        [("prepared while guests run", 0.0, 100.0), ("guests stand still", 100.0, 50.0)]
    );
    assert_eq!(spans(&runs[1], "CPU 1"), [("update: blackout", 100.0, 40.0)]);
    let blackout = blackout_of(&runs[1]).expect("an update has one");
    assert_eq!(
        (blackout.name.as_str(), blackout.tracks.len()),
        ("update to generation 2, the blackout", 0),
        "no step is shown"
    );
    assert!(blackout_of(&runs[0]).is_none());
}

#[test]
fn a_blackouts_steps_begin_with_it() {
    let step = |name, from, to| vec![point(from, BEGIN, name, 2), point(to, END, name, 2)];
    let points = [
        vec![point(100, INSTANT, Name::FirstInstruction, 2)],
        step(Name::UpdateBlackout, 300, 340),
        step(Name::UpdateSave, 300, 310),
        step(Name::UpdateRestore, 320, 340),
        step(Name::UpdateSettle, 340, 390),
    ];
    let blackout = blackout_of(&runs(&[page(0, points.concat())], &known())[0]).expect("an update");
    let expected = [("all stop, guests saved", 0.0, 10.0), ("guests restored", 20.0, 20.0)];
    assert_eq!(spans(&blackout, "CPU 0"), expected);
}

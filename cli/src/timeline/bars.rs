// SPDX-License-Identifier: MIT OR Apache-2.0
//! The picture on a terminal: a bar for each span that is long enough to see, and the ten longest.

use std::fmt::Write as _;

use super::{Run, Span, Track, time};

/// Columns of the bars.
const BAR_COLUMNS: usize = 48;
/// Columns of a name.
const NAME_COLUMNS: usize = 28;
/// A span shorter than this share of the run gets no bar of its own.
const LEAST_SHARE: f64 = 0.005;
/// Eighths of a column, to place a bar's end.
const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
const LONGEST: usize = 10;

/// Choice of a run's tracks: those that are drawn as bars, and those of which the longest spans are named.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Returns true if a track's bars are drawn.
    pub draws: fn(&str) -> bool,
    /// Returns true if a track's spans may be among the longest.
    pub lists: fn(&str) -> bool,
    /// Heading of the longest spans: the set that they are the longest of.
    pub listed: &'static str,
}

/// Bars of some tracks, and the longest spans of some.
pub fn draw(run: &Run, view: View) -> String {
    let whole = run.end_us().max(1.0);
    let mut text = format!("{}: {}\n", run.name, time(run.end_us()));
    let drawn: Vec<&Track> = run.tracks.iter().filter(|track| (view.draws)(&track.name)).collect();
    for track in &drawn {
        if drawn.len() > 1 {
            let _ = writeln!(text, "{}", track.name);
        }
        for span in track.spans.iter().filter(|span| span.length_us >= whole * LEAST_SHARE || span.length_us == 0.0) {
            let name = shorten(&span.name, NAME_COLUMNS);
            let took = if span.length_us > 0.0 { time(span.length_us) } else { String::new() };
            let _ = writeln!(text, "{name:<NAME_COLUMNS$} {took:>9} │{}", bar(span, whole));
        }
    }
    let longest = run.longest(view.lists, LONGEST);
    let _ = writeln!(text, "\nthe {} longest of {}:", longest.len(), view.listed);
    for (place, span) in longest.iter().enumerate() {
        let share = span.length_us / whole * 100.0;
        let _ = writeln!(text, "{:>2}. {:>9} {share:>4.1} %  {}", place + 1, time(span.length_us), span.name);
        span.note.iter().for_each(|note| {
            let _ = writeln!(text, "                       ▸ {note}");
        });
    }
    text
}

fn bar(span: &Span, whole: f64) -> String {
    let column = |us: f64| us / whole * BAR_COLUMNS as f64;
    let (start, end) = (column(span.start_us), column(span.start_us + span.length_us));
    let mut bar = " ".repeat(start as usize);
    if span.length_us == 0.0 {
        bar.push('◆');
        return bar;
    }
    let full = (end - start).max(0.125);
    bar.push_str(&"█".repeat(full as usize));
    let eighths = (full.fract() * 8.0) as usize;
    bar.extend((eighths > 0).then(|| EIGHTHS[eighths]));
    bar
}

/// Shortens a text to a number of columns.
fn shorten(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    text.chars().take(columns - 1).chain(['…']).collect()
}

#[cfg(test)]
#[path = "bars_tests.rs"]
mod tests;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pictures of spans of time, and their formats.
//!
//! ```text
//! running host ───► host ──┐                 ┌─► bars    the terminal
//! Linux boot log ─► dmesg ─┼─► Picture ──────┼─► page    one self-contained HTML page
//! saved picture ───────────┘                 └─► chrome  trace JSON for Perfetto and chrome://tracing
//! ```
//!
//! A picture knows nothing of where its spans come from.

pub mod advice;
pub mod bars;
pub mod chrome;
pub mod dmesg;
pub mod host;
pub mod page;

use serde::{Deserialize, Serialize};

/// One or several runs, to be checked side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// Its title.
    pub title: String,
    /// The runs, each beginning at its own time 0.
    pub runs: Vec<Run>,
}

/// One run: a boot, a restart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = TimelineRun))]
pub struct Run {
    /// Its name.
    pub name: String,
    /// Its tracks, from top to bottom.
    pub tracks: Vec<Track>,
}

/// Spans that belong on one line: a CPU's, a phase's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = TimelineTrack))]
pub struct Track {
    /// Its name.
    pub name: String,
    /// In the order of their beginnings.
    pub spans: Vec<Span>,
}

/// A named span of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = TimelineSpan))]
pub struct Span {
    /// Its name.
    pub name: String,
    /// Its beginning, in microseconds since the run's.
    pub start_us: f64,
    /// Its length in microseconds; 0 is an instant.
    pub length_us: f64,
    /// Further notes: its context, and advice to shorten it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Run {
    /// Returns when its last span ends, in microseconds.
    pub fn end_us(&self) -> f64 {
        let ends = self.tracks.iter().flat_map(|track| &track.spans).map(|span| span.start_us + span.length_us);
        ends.fold(0.0, f64::max)
    }

    /// Returns the `count` longest spans of the tracks that are wanted, the longest first; of equally long ones the
    /// earlier.
    pub fn longest(&self, is_wanted: impl Fn(&str) -> bool, count: usize) -> Vec<&Span> {
        let spans = self.tracks.iter().filter(|track| is_wanted(&track.name)).flat_map(|track| &track.spans);
        let mut spans: Vec<&Span> = spans.filter(|span| span.length_us > 0.0).collect();
        spans.sort_by(|a, b| b.length_us.total_cmp(&a.length_us).then(a.start_us.total_cmp(&b.start_us)));
        spans.truncate(count);
        spans
    }
}

/// Microseconds for people: `640 µs`, `12.5 ms`, `3.89 s`.
pub fn time(us: f64) -> String {
    match us {
        ..1_000.0 => format!("{us:.0} µs"),
        ..1_000_000.0 => format!("{:.1} ms", us / 1e3),
        _ => format!("{:.2} s", us / 1e6),
    }
}

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A Linux boot log as a run: the phase of each moment, and the gaps between lines.
//!
//! A line carries the time at which it was printed. What happens between two lines is known only by both: the run's
//! track `gaps` has a span for each pair, the track `phases` joins those that belong together.

use thiserror::Error;

use super::advice::{self, Cause};
use super::{Run, Span, Track};

/// The track of gaps between lines.
pub const GAPS: &str = "gaps";
/// The track of phases.
pub const PHASES: &str = "phases";
/// A log with less than this is not one of a boot.
const FEWEST_LINES: usize = 2;
/// Lines that are checked.
const MOST_LINES: usize = 1_000_000;
/// Characters of a line that are shown.
const SHOWN_CHARACTERS: usize = 120;

/// The reason why a text is no boot log.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum DmesgError {
    /// No or nearly no line has a time.
    #[error(
        "{lines} lines with a time stamp like `[    0.123456]`: give the output of `dmesg` of a kernel with \
         printk.time=1"
    )]
    NoTimes {
        /// Lines that have one.
        lines: usize,
    },
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    at_us: f64,
    text: String,
}

/// Reads a log up to where init starts; the later work of user space is not the kernel's boot.
///
/// # Errors
/// [`DmesgError`]
pub fn read(name: &str, log: &str) -> Result<Run, DmesgError> {
    let mut lines: Vec<Line> = log.lines().take(MOST_LINES).filter_map(line).collect();
    if lines.len() < FEWEST_LINES {
        return Err(DmesgError::NoTimes { lines: lines.len() });
    }
    // CPUs' lines may come out of order by a little.
    lines.sort_by(|a, b| a.at_us.total_cmp(&b.at_us));
    if let Some(init) = lines.iter().position(|line| advice::is_init(&line.text)) {
        lines.truncate(init + 1);
    }
    let gaps = gaps(&lines);
    let tracks =
        vec![Track { name: PHASES.to_owned(), spans: phases(&lines) }, Track { name: GAPS.to_owned(), spans: gaps }];
    Ok(Run { name: name.to_owned(), tracks })
}

/// `[    0.123456] text`, with or without a priority `<6>` before and a CPU or thread `[    T1]` behind the time.
fn line(text: &str) -> Option<Line> {
    let text = text.trim_start();
    let text = if text.starts_with('<') { text.split_once('>')?.1 } else { text };
    let (time, text) = text.strip_prefix('[')?.split_once(']')?;
    let (seconds, fraction) = time.trim().split_once('.')?;
    let is_number = |part: &str| !part.is_empty() && part.len() <= 12 && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(seconds) || !is_number(fraction) {
        return None;
    }
    let at_us = time.trim().parse::<f64>().ok()? * 1e6;
    let text = text.trim_start();
    let caller = |rest: &str| rest.starts_with(['T', 'C']) && rest[1..].bytes().all(|byte| byte.is_ascii_digit());
    let text = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((inner, rest)) if caller(inner.trim()) => rest.trim_start(),
        _ => text,
    };
    let text = text.chars().filter(|character| !character.is_control()).take(SHOWN_CHARACTERS).collect();
    Some(Line { at_us, text })
}

/// Returns the gaps between the lines; times count from the first line.
fn gaps(lines: &[Line]) -> Vec<Span> {
    let began = lines.first().map_or(0.0, |line| line.at_us);
    let pairs = lines.windows(2).filter(|pair| pair[1].at_us > pair[0].at_us);
    let span = |pair: &[Line]| {
        let cause = Cause::of(&pair[0].text, &pair[1].text);
        Span {
            name: format!("{} → {}", pair[0].text, pair[1].text),
            start_us: pair[0].at_us - began,
            length_us: pair[1].at_us - pair[0].at_us,
            note: cause.map(|cause| cause.cure().to_owned()),
        }
    };
    pairs.map(span).collect()
}

/// Neighbouring gaps with one cause, joined.
fn phases(lines: &[Line]) -> Vec<Span> {
    let began = lines.first().map_or(0.0, |line| line.at_us);
    let mut spans: Vec<Span> = Vec::new();
    for pair in lines.windows(2) {
        let name = Cause::of(&pair[0].text, &pair[1].text).map_or("other", Cause::name);
        let length_us = pair[1].at_us - pair[0].at_us;
        match spans.last_mut() {
            Some(last) if last.name == name => last.length_us += length_us,
            _ => spans.push(Span { name: name.to_owned(), start_us: pair[0].at_us - began, length_us, note: None }),
        }
    }
    spans.retain(|span| span.length_us > 0.0);
    spans
}

#[cfg(test)]
#[path = "dmesg_tests.rs"]
mod tests;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! All output of a host and its guests.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Result, ensure};
use lab::{Ending, What};
use wire::EventKind;

/// Lines shown of the host's log when something is missing from it.
const HOST_LINES: usize = 40;
/// Lines shown of a guest's console.
const CONSOLE_LINES: usize = 15;

/// All output of a host and its guests so far.
#[derive(Debug, Default)]
pub struct Transcript {
    /// The host's log.
    pub host: Vec<String>,
    /// Messages of the emulator and the broker.
    pub notes: Vec<String>,
    /// Every event, in order.
    pub events: Vec<EventKind>,
    /// The host has answered.
    pub is_ready: bool,
    /// The machine's end.
    pub ending: Option<Ending>,
    consoles: BTreeMap<String, Vec<u8>>,
}

impl Transcript {
    /// Takes down what happened.
    pub fn add(&mut self, what: What) {
        match what {
            What::HostLine(line) => self.host.push(line),
            What::EmulatorLine(line) | What::Note(line) => self.notes.push(line),
            What::Console { name, bytes } => self.consoles.entry(name).or_default().extend(bytes),
            What::Event(event) => self.events.push(event.kind),
            What::Ready => self.is_ready = true,
            What::Ended(ending) => self.ending = Some(ending),
        }
    }

    /// A guest's console from its first byte.
    pub fn console(&self, guest: &str) -> String {
        String::from_utf8_lossy(self.console_bytes(guest, 0)).into_owned()
    }

    /// A guest's console from this byte on.
    pub fn console_bytes(&self, guest: &str, from: usize) -> &[u8] {
        self.consoles.get(guest).and_then(|bytes| bytes.get(from..)).unwrap_or_default()
    }

    /// Returns whether a line of the host's log contains all of `parts`.
    pub fn host_logged(&self, parts: &[&str]) -> bool {
        self.host.iter().any(|line| parts.iter().all(|part| line.contains(part)))
    }

    /// Fails if a heartbeat of a guest that was never reset is missing.
    pub fn no_heartbeat_is_missing(&self, guest: &str) -> Result<()> {
        let beats = self.heartbeats(guest);
        let is_whole = beats.iter().copied().eq(0..beats.len() as u64);
        ensure!(is_whole, "heartbeats of {guest} are missing: {beats:?}\n{self}");
        Ok(())
    }

    /// The numbers of the heartbeats of a guest, in order.
    pub fn heartbeats(&self, guest: &str) -> Vec<u64> {
        let console = self.console(guest);
        let complete = console.rsplit_once('\n').map_or("", |(lines, _)| lines);
        let numbers = complete.lines().filter_map(|line| line.trim().strip_prefix("heartbeat ")?.split(' ').next());
        numbers.filter_map(|number| number.parse().ok()).collect()
    }
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tail = |lines: &[&str], most| lines[lines.len().saturating_sub(most)..].join("\n    ");
        let host: Vec<&str> = self.host.iter().map(String::as_str).collect();
        write!(f, "  host:\n    {}", tail(&host, HOST_LINES))?;
        for (name, bytes) in &self.consoles {
            let text = String::from_utf8_lossy(bytes);
            write!(f, "\n  {name}:\n    {}", tail(&text.lines().collect::<Vec<_>>(), CONSOLE_LINES))?;
        }
        if !self.notes.is_empty() {
            write!(f, "\n  notes:\n    {}", self.notes.join("\n    "))?;
        }
        match &self.ending {
            Some(ending) => write!(f, "\n  {ending}"),
            None => Ok(()),
        }
    }
}

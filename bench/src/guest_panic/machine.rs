// SPDX-License-Identifier: MIT OR Apache-2.0
//! A lab machine with several Linux guests, started one by one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use anyhow::{Result, bail};
use baton::config::Guest;
use baton::size::Size;
use bundle::OnPanic;
use lab::{Happening, Lab, What};
use tempfile::TempDir;
use wire::{EventKind, RequestBody};

use super::MEMORY;
use crate::Context;
use crate::setup::{HostSetup, guest, temporary_folder};

/// Memory of the machine beyond its guests'.
const HOST_MEMORY: Size = Size::mebibytes(256);
/// Duration of one piece of following.
const PIECE: Duration = Duration::from_secs(10);

/// The machine and its output.
pub(super) struct Machines {
    lab: Lab,
    timeout: Duration,
    /// Guests' output since the last line that was waited for.
    consoles: BTreeMap<String, String>,
    /// Events, and how many of them were found by waiting.
    events: Vec<(Duration, EventKind)>,
    seen_events: usize,
    _folder: TempDir,
}

/// A guest with an agent that does `tasks`.
pub(super) fn linux(context: &Context, name: &str, tasks: &str, option: &str) -> Result<Guest> {
    Ok(Guest {
        initrd: Some(context.made("target/guests/initramfs.cpio")?),
        cmdline: format!("console=ttyS0 {option} agent={tasks}"),
        on_panic: OnPanic::Throttle,
        hung_s: 10,
        autostart: false,
        ..guest(name, context.made("target/kernels/default/vmlinuz")?, MEMORY)
    })
}

impl Machines {
    /// Starts the host; no guest runs yet.
    pub fn start(context: &Context, cpus: u32, guests: &[Guest], extra: Vec<OsString>) -> Result<Self> {
        let folder = temporary_folder()?;
        let memory = Size { bytes: HOST_MEMORY.bytes + MEMORY.bytes * guests.len() as u64 };
        let setup = HostSetup { cpus, guests: guests.to_vec(), extra, ..HostSetup::new(memory) };
        let lab = setup.start_in(context, folder.path())?;
        let (consoles, events) = (BTreeMap::new(), Vec::new());
        let mut started = Self { lab, timeout: context.timeout, consoles, events, seen_events: 0, _folder: folder };
        started.wait("the host's first answer", |_, what, _| matches!(what, What::Ready).then_some(()))?;
        Ok(started)
    }

    /// Sends an order to the host.
    pub fn order(&mut self, body: RequestBody) -> Result<()> {
        self.lab.client()?.order(body)
    }

    /// Starts a guest.
    pub fn start_guest(&mut self, name: &str) -> Result<()> {
        self.order(RequestBody::VmStart { name: name.to_owned() })
    }

    /// Stops a guest, and waits until it has ended.
    pub fn stop_guest(&mut self, name: &str) -> Result<()> {
        self.order(RequestBody::VmStop { name: name.to_owned() })?;
        let is_it = |kind: &EventKind| matches!(kind, EventKind::VmStopped { name: stopped, .. } if stopped == name);
        self.wait_event("the guest's end", is_it).map(drop)
    }

    /// Waits for a line of a guest's that contains `text`: when its end arrived, and the line. Earlier ones are
    /// discarded.
    pub fn wait_line(&mut self, guest: &str, text: &str) -> Result<(Duration, String)> {
        self.wait(&format!("the line {text:?} of {guest}"), |at, _, machine| {
            let console = machine.consoles.get_mut(guest)?;
            let found = console.find(text)?;
            let end = found + console[found..].find('\n')? + 1;
            let line = console[found..end].trim_end().to_owned();
            console.drain(..end);
            Some((at, line))
        })
    }

    /// Waits for an event behind the last that was waited for: when it arrived.
    pub fn wait_event(&mut self, name: &str, is_it: impl Fn(&EventKind) -> bool) -> Result<Duration> {
        self.wait(name, |_, _, machine| {
            let rest = machine.events.iter().enumerate().skip(machine.seen_events);
            let (index, at) =
                rest.into_iter().find(|(_, (_, kind))| is_it(kind)).map(|(index, (at, _))| (index, *at))?;
            machine.seen_events = index + 1;
            Some(at)
        })
    }

    /// Records events for this time; `progress` is called now and then with the time that is left.
    pub fn follow(&mut self, time: Duration, progress: impl Fn(Duration)) -> Result<()> {
        let end = self.lab.elapsed() + time;
        while let Some(left) = end.checked_sub(self.lab.elapsed()).filter(|left| !left.is_zero()) {
            progress(left);
            let piece_end = self.lab.elapsed() + left.min(PIECE);
            while let Some(wait) = piece_end.checked_sub(self.lab.elapsed()) {
                let Some(happening) = self.lab.next(wait) else { break };
                if let What::Ended(ending) = self.take(happening).1 {
                    bail!("the machine ended while busy guests were watched: {ending}");
                }
            }
        }
        Ok(())
    }

    /// Returns the number of events of a kind.
    pub fn count(&self, is_it: impl Fn(&EventKind) -> bool) -> usize {
        self.events.iter().filter(|(_, kind)| is_it(kind)).count()
    }

    fn take(&mut self, Happening { at, what }: Happening) -> (Duration, What) {
        match &what {
            What::Console { name, bytes } => {
                self.consoles.entry(name.clone()).or_default().push_str(&String::from_utf8_lossy(bytes));
            }
            What::Event(event) => self.events.push((at, event.kind.clone())),
            _ => {}
        }
        (at, what)
    }

    /// Records events until `wanted` returns something.
    fn wait<T>(&mut self, name: &str, mut wanted: impl FnMut(Duration, &What, &mut Self) -> Option<T>) -> Result<T> {
        let deadline = self.lab.elapsed() + self.timeout;
        let nothing = What::Note(String::new());
        if let Some(found) = wanted(self.lab.elapsed(), &nothing, self) {
            return Ok(found);
        }
        while let Some(left) = deadline.checked_sub(self.lab.elapsed()) {
            let Some(happening) = self.lab.next(left) else { break };
            let (at, what) = self.take(happening);
            if let Some(found) = wanted(at, &what, self) {
                return Ok(found);
            }
            if let What::Ended(ending) = &what {
                bail!("{name} did not come: {ending}");
            }
        }
        let consoles = self.consoles.values().map(|text| text.lines().last().unwrap_or_default());
        let last: Vec<&str> = consoles.collect();
        bail!(
            "{name} did not come within {:?}; raise --timeout on a slow machine (last lines: {last:#?})",
            self.timeout
        )
    }
}

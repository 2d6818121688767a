// SPDX-License-Identifier: MIT OR Apache-2.0
//! A running host: wait for its output, give it orders.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use baton::client::Client;
use lab::{Ending, Lab};
use tempfile::TempDir;
use wire::{EventKind, Refusal, ReplyBody, RequestBody, UpdateBy, UploadKind, VmInfo, VmState};

use crate::transcript::Transcript;

/// Longest time for one boot from its start to the end of its test.
pub const BOOT_LIMIT: Duration = Duration::from_secs(120);
/// Interval at which a state is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A running host. Dropping it ends the emulator.
pub struct Host {
    lab: Lab,
    /// All output until the last wait, exchange or order.
    pub seen: Transcript,
    /// Start of the next [`Self::guest_prints`], by guest.
    read: BTreeMap<String, usize>,
    /// Events that [`Self::event`] has found already.
    found: Vec<usize>,
    deadline: Instant,
    limit: Duration,
    _folder: TempDir,
}

impl Host {
    /// A machine that was just started, with the folder its files are in.
    pub fn new(lab: Lab, folder: TempDir) -> Self {
        let deadline = Instant::now() + BOOT_LIMIT;
        let (read, found) = (BTreeMap::new(), Vec::new());
        Self { lab, seen: Transcript::default(), read, found, deadline, limit: BOOT_LIMIT, _folder: folder }
    }

    /// Allows so long for the whole boot instead of [`BOOT_LIMIT`].
    pub fn limit(&mut self, limit: Duration) {
        self.deadline = self.deadline - self.limit + limit;
        self.limit = limit;
    }

    /// Waits until `is_there` accepts the output so far; `what` names the condition.
    pub fn wait(&mut self, what: &str, is_there: impl Fn(&Transcript) -> bool) -> Result<()> {
        self.catch_up();
        while !is_there(&self.seen) {
            let left = self.deadline.saturating_duration_since(Instant::now());
            ensure!(!left.is_zero(), "{what} did not come within {:?}:\n{}", self.limit, self.seen);
            match self.lab.next(left) {
                Some(happening) => self.seen.add(happening.what),
                None if self.seen.ending.is_some() => bail!("the machine ended before {what}:\n{}", self.seen),
                None => {}
            }
        }
        Ok(())
    }

    /// The boot may take so long from now on.
    pub fn allow(&mut self, time: Duration) {
        self.deadline = Instant::now() + time;
    }

    /// Records the output for so long.
    pub fn listen(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while let Some(happening) = self.lab.next(end.saturating_duration_since(Instant::now())) {
            self.seen.add(happening.what);
        }
    }

    /// Records the output that has come. Without it, what is seen would be older than the host's answers.
    pub fn catch_up(&mut self) {
        self.listen(Duration::ZERO);
    }

    /// Waits for a line of the host's log that contains all of `parts`.
    pub fn logs(&mut self, parts: &[&str]) -> Result<()> {
        self.wait(&format!("a line of the host's with {parts:?}"), |seen| seen.host_logged(parts))
    }

    /// Waits for `text` on a guest's console, behind what the last call found.
    pub fn guest_prints(&mut self, guest: &str, text: &str) -> Result<()> {
        let from = self.read.get(guest).copied().unwrap_or(0);
        let find = |seen: &Transcript| {
            let bytes = seen.console_bytes(guest, from);
            bytes.windows(text.len()).position(|window| window == text.as_bytes())
        };
        self.wait(&format!("{text:?} on the console of {guest}"), |seen| find(seen).is_some())?;
        let end = from + find(&self.seen).unwrap_or(0) + text.len();
        self.read.insert(guest.to_owned(), end);
        Ok(())
    }

    /// Waits for the agent's greeting from a Linux guest's userspace.
    pub fn greets(&mut self, guest: &str) -> Result<()> {
        self.guest_prints(guest, lab::GREETING)
    }

    /// Waits for `count` more heartbeats of a guest.
    pub fn beats(&mut self, guest: &str, count: usize) -> Result<()> {
        self.catch_up();
        let had = self.seen.heartbeats(guest).len();
        let what = format!("{count} heartbeats of {guest}");
        self.wait(&what, |seen| seen.heartbeats(guest).len() >= had + count)
    }

    /// Waits for an event; each call finds another one.
    pub fn event(&mut self, kind: &EventKind) -> Result<()> {
        let found = self.found.clone();
        let find = |seen: &Transcript| {
            seen.events.iter().enumerate().find(|(at, event)| *event == kind && !found.contains(at)).map(|(at, _)| at)
        };
        self.wait(&format!("the event \"{kind}\""), |seen| find(seen).is_some())?;
        self.found.extend(find(&self.seen));
        Ok(())
    }

    /// Waits until the host answers.
    pub fn is_ready(&mut self) -> Result<()> {
        self.wait("an answer over the control channel", |seen| seen.is_ready)
    }

    /// Waits for the end of the machine.
    pub fn ending(&mut self) -> Result<Ending> {
        self.wait("the end of the machine", |seen| seen.ending.is_some())?;
        self.seen.ending.clone().context("it ended")
    }

    /// A connection to the host.
    pub fn client(&mut self) -> Result<Client> {
        self.is_ready()?;
        self.lab.client()
    }

    /// Sends a file. That takes as long as it takes; what is waited for next is waited for as from a boot's beginning.
    pub fn upload(&mut self, kind: UploadKind, file: &[u8]) -> Result<()> {
        let sent = self.client()?.upload(kind, file, |_| {});
        self.catch_up();
        self.allow(BOOT_LIMIT);
        sent
    }

    /// The emulator's process id.
    pub fn pid(&self) -> u32 {
        self.lab.pid()
    }

    /// Returns where clients connect to.
    pub fn control_socket(&self) -> PathBuf {
        self.lab.dir().control_socket()
    }

    /// One guest as the host reports it.
    pub fn vm(&mut self, name: &str) -> Result<VmInfo> {
        let vms = self.client()?.vms()?;
        self.catch_up();
        vms.into_iter().find(|vm| vm.name == name).with_context(|| format!("{name} is not in the list"))
    }

    /// Waits until a guest is in this state, and returns the host's report of it.
    pub fn state(&mut self, name: &str, state: VmState) -> Result<VmInfo> {
        loop {
            let vm = self.vm(name)?;
            if vm.state == state {
                return Ok(vm);
            }
            self.wait_a_moment().with_context(|| format!("{name} did not become {state}, it is {}", vm.state))?;
        }
    }

    /// Records the output for a moment; an error once the boot has taken too long. For loops that ask again
    /// and again.
    pub fn wait_a_moment(&mut self) -> Result<()> {
        ensure!(Instant::now() < self.deadline, "the boot has taken {:?}:\n{}", self.limit, self.seen);
        self.listen(POLL_INTERVAL);
        Ok(())
    }

    /// Waits until a guest has failed, and returns the reason.
    pub fn failure(&mut self, name: &str) -> Result<String> {
        self.state(name, VmState::Failed)?.reason.with_context(|| format!("{name} failed without a reason"))
    }

    /// Gives an order that the host takes.
    pub fn order(&mut self, body: RequestBody) -> Result<()> {
        let done = self.client()?.order(body);
        self.catch_up();
        done
    }

    /// Updates by the host's own bundle; the next image is of this generation.
    pub fn update_to(&mut self, generation: u64) -> Result<()> {
        let update = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };
        let reply = self.client()?.request_within(BOOT_LIMIT, update);
        self.catch_up();
        match reply? {
            ReplyBody::Updated(report) => ensure!(report.generation == generation, "{report:?}"),
            other => bail!("not the answer to an update: {other:?}"),
        }
        Ok(())
    }

    /// Gives an order that the host refuses, and returns the refusal.
    pub fn refusal(&mut self, body: RequestBody) -> Result<Refusal> {
        // The steps of an update before its refusal may have taken many seconds.
        let reply = self.client()?.request_within(BOOT_LIMIT, body.clone());
        self.catch_up();
        match reply {
            Ok(reply) => bail!("{body:?} was not refused: {reply:?}"),
            Err(error) => error.downcast::<Refusal>().map_err(|error| self.explained(&error)),
        }
    }

    /// The error of an exchange, with all that the host has printed until now.
    fn explained(&mut self, error: &anyhow::Error) -> anyhow::Error {
        self.listen(POLL_INTERVAL);
        anyhow!("{error:#}:\n{}", self.seen)
    }

    /// Types on a guest's console.
    pub fn types(&mut self, name: &str, text: &str) -> Result<()> {
        self.order(RequestBody::ConsoleInput { name: name.to_owned(), bytes: text.into() })
    }

    /// The host answers now, and its answer is of now.
    pub fn is_up(&mut self) -> Result<()> {
        let before = self.client()?.info()?.uptime_ns;
        let after = self.client()?.info()?.uptime_ns;
        ensure!(after > before, "the host's uptime does not rise: {before}, {after}");
        Ok(())
    }

    /// Asks the host to power off, and sees it do so.
    pub fn powers_off(mut self) -> Result<()> {
        // The answer may be cut off by the end.
        let _ = self.client()?.request(RequestBody::PowerOff);
        let ending = self.ending()?;
        ensure!(ending == Ending::PoweredOff, "{ending}:\n{}", self.seen);
        Ok(())
    }
}

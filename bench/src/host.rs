// SPDX-License-Identifier: MIT OR Apache-2.0
//! A lab machine with Baton and one guest, as benches need it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use baton::client::Client;
use baton::config::Guest;
use baton::size::Size;
use bundle::Pmu;
use lab::{Happening, Lab, What};
use tempfile::TempDir;
use wire::{EventKind, ReplyBody, RequestBody};

use super::Context;
use super::setup::{HostSetup, guest, temporary_folder};

/// The guest's name.
const NAME: &str = "guest";
/// The guest's lines that an error shows.
const LINES_SHOWN: usize = 10;
/// Memory of the lab machine beyond its guest's: for the host and the bundle.
const HOST_MEMORY: Size = Size::mebibytes(256);

/// The guest to run.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub kernel: PathBuf,
    pub initrd: Option<PathBuf>,
    pub cmdline: String,
    pub memory: Size,
    /// Its performance counters.
    pub pmu: Pmu,
    /// The host's options.
    pub options: String,
}

impl Plan {
    fn guest(&self) -> Guest {
        Guest {
            initrd: self.initrd.clone(),
            cmdline: self.cmdline.clone(),
            hung_s: 10,
            pmu: self.pmu,
            autostart: false,
            ..guest(NAME, self.kernel.clone(), self.memory)
        }
    }
}

/// A machine that runs Baton with one guest. Dropping it ends it.
pub(super) struct Hosted {
    pub lab: Lab,
    timeout: Duration,
    /// The guest's output, until a line of it is taken.
    console: String,
    /// The bundle and the sockets are there.
    folder: TempDir,
}

impl Hosted {
    /// Starts Baton on a machine of one CPU, its guest not yet running; `extra` is added to the emulator's
    /// command line.
    pub fn start(context: &Context, plan: &Plan, extra: impl FnOnce(&TempDir) -> Vec<OsString>) -> Result<Self> {
        Self::start_as(context, plan, |folder, setup| HostSetup { extra: extra(folder), ..setup })
    }

    /// The same on a machine that `change` makes of the usual one.
    pub fn start_as(
        context: &Context,
        plan: &Plan,
        change: impl FnOnce(&TempDir, HostSetup) -> HostSetup,
    ) -> Result<Self> {
        let folder = temporary_folder()?;
        let usual = HostSetup {
            guests: vec![plan.guest()],
            options: plan.options.clone(),
            ..HostSetup::new(Size { bytes: plan.memory.bytes + HOST_MEMORY.bytes })
        };
        let setup = change(&folder, usual);
        let lab = setup.start_in(context, folder.path())?;
        Ok(Self { lab, timeout: context.timeout, console: String::new(), folder })
    }

    /// Returns the folder of its sockets.
    pub fn folder(&self) -> &TempDir {
        &self.folder
    }

    /// Limits all waits to this time from now on, within the limit of every machine.
    pub fn limit(&mut self, timeout: Duration) {
        self.timeout = self.timeout.min(self.lab.elapsed() + timeout);
    }

    /// Starts the guest; returns the client that asked for it. The tool has subscribed to its console by then, so that
    /// no line of it is lost.
    pub fn start_guest(&mut self) -> Result<Client> {
        self.wait("the host's first answer", |what, _| matches!(what, What::Ready).then_some(()))?;
        let mut client = self.lab.client()?;
        client.order(RequestBody::VmStart { name: NAME.to_owned() })?;
        Ok(client)
    }

    /// Waits for the guest's start; returns when the tool learnt of it.
    pub fn wait_started(&mut self) -> Result<Duration> {
        self.wait("the guest's start", |what, _| match what {
            What::Event(event) if matches!(event.kind, EventKind::VmStarted { .. }) => Some(()),
            _ => None,
        })
        .map(|(at, ())| at)
    }

    /// Waits for a line of the guest's that contains `text`; returns when its end arrived. Earlier lines are dropped.
    pub fn wait_line(&mut self, text: &str) -> Result<Duration> {
        self.collect_lines(text).map(|(at, _)| at)
    }

    /// The guest's lines up to and with the one that contains `text`, and when its end arrived.
    pub fn collect_lines(&mut self, text: &str) -> Result<(Duration, Vec<String>)> {
        self.wait(&format!("the guest's line {text:?}"), |_, console| {
            let found = console.find(text)?;
            let end = found + console[found..].find('\n')? + 1;
            let lines = console[..end].lines().map(str::to_owned).collect();
            console.drain(..end);
            Some(lines)
        })
    }

    /// Returns the guest's state as the host reports it, for an error message.
    fn guest_state(&self) -> String {
        let ask = || self.lab.client()?.request_within(STATE_TIMEOUT, RequestBody::VmList { from_index: 0 });
        match ask() {
            Ok(ReplyBody::Vms { vms, .. }) if !vms.is_empty() => {
                format!("the host reports: {}, {} exits, of them {:?}", vms[0].state, vms[0].exits_total, vms[0].exits)
            }
            Ok(_) => "the host knows of no guest".to_owned(),
            Err(error) => format!("the host is unresponsive: {error}"),
        }
    }

    /// Waits until `wanted` returns something for a happening and the console's text.
    fn wait<T>(
        &mut self,
        name: &str,
        mut wanted: impl FnMut(&What, &mut String) -> Option<T>,
    ) -> Result<(Duration, T)> {
        let mut last_lines = Vec::new();
        while let Some(left) = self.timeout.checked_sub(self.lab.elapsed()) {
            let Some(Happening { at, what }) = self.lab.next(left) else { break };
            match &what {
                What::Console { bytes, .. } => self.console.push_str(&String::from_utf8_lossy(bytes)),
                What::HostLine(line) | What::EmulatorLine(line) => last_lines.push(line.clone()),
                _ => {}
            }
            if let Some(found) = wanted(&what, &mut self.console) {
                return Ok((at, found));
            }
            if let What::Ended(ending) = &what {
                bail!("{name} did not come: {ending}{}", output(&last_lines, &self.console));
            }
        }
        let (state, output) = (self.guest_state(), output(&last_lines, &self.console));
        bail!("{name} did not come within {:?} ({state}); raise --timeout on a slow machine{output}", self.timeout)
    }
}

/// The time limit for the host's report on a guest that did not get there.
const STATE_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the output of host and guest, for an error message.
fn output(host_lines: &[String], console: &str) -> String {
    let lines: Vec<&str> = console.lines().collect();
    let last = lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n");
    format!("\nThe host's lines were\n{}\nThe guest's last lines were\n{last}", host_lines.join("\n"))
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests of `guests/perf` on a host of one CPU, which may be replaced while they are profiled.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, bail};
use baton::config::{Guest, Image};
use baton::size::Size;
use bundle::Pmu;
use lab::{Happening, Lab, What};
use tempfile::TempDir;
use wire::{ReplyBody, RequestBody, UpdateBy};

use super::Context;
use crate::exits::Clock;
use crate::setup::{HostSetup, guest, temporary_folder};

/// Cycles for each sample.
const PERIOD: u64 = 1_000_000;
const GUEST_MEMORY: Size = Size::mebibytes(384);
/// Memory of the machine beyond its guests': for the host, the next one beside it, and the bundle.
const HOST_MEMORY: Size = Size::mebibytes(384);
/// Longest time for one machine.
const TIMEOUT: Duration = Duration::from_secs(3600);
/// The profile begins, the program is over, the guest is done.
const BEGINS: &str = "perf: record: begins";
const COMPUTED: &str = "perf: record: shares: ";
const DONE: &str = "perf: done";

/// Guests, by the name of their counters' vendor, and what they do.
pub(super) struct Setup {
    pub guests: &'static [(&'static str, Pmu)],
    pub tasks: &'static str,
    pub computes_ms: u64,
    pub policy: &'static str,
    /// Number of updates of the host while the guests are profiled.
    pub updates: usize,
}

/// Runs the guests until they are done; returns what each wrote on its console.
pub(super) fn run_setup(context: &Context, setup: &Setup) -> Result<BTreeMap<String, String>> {
    let mut hosted = Hosted::start(context, setup)?;
    hosted.until("profiles to begin", |console| console.contains(BEGINS))?;
    if hosted.consoles.values().any(|console| console.contains(COMPUTED)) {
        bail!("a guest's profile was over before another's began: have the program compute for longer");
    }
    for update in 1..=setup.updates {
        context.step(&format!("vpmu-precision: update {update} of {}", setup.updates));
        hosted.update()?;
        if hosted.consoles.values().any(|console| console.contains(COMPUTED)) {
            bail!("a profile was over before update {update} of {}: have the program compute longer", setup.updates);
        }
    }
    hosted.until("guests to be done", |console| console.contains(DONE))?;
    hosted.lab.kill();
    Ok(hosted.consoles)
}

struct Hosted {
    lab: Lab,
    timeout: Duration,
    consoles: BTreeMap<String, String>,
    host_lines: Vec<String>,
    _folder: TempDir,
}

impl Hosted {
    fn start(context: &Context, setup: &Setup) -> Result<Self> {
        let folder = temporary_folder()?;
        let lab = host(context, setup)?.start_in(context, folder.path())?;
        let consoles = setup.guests.iter().map(|(name, _)| ((*name).to_owned(), String::new())).collect();
        let timeout = context.timeout.max(TIMEOUT);
        Ok(Self { lab, timeout, consoles, host_lines: Vec::new(), _folder: folder })
    }

    /// Waits until every guest's console is as wanted.
    fn until(&mut self, what: &str, is_there: impl Fn(&str) -> bool) -> Result<()> {
        while !self.consoles.values().all(|console| is_there(console)) {
            let left = self.timeout.checked_sub(self.lab.elapsed()).unwrap_or_default();
            let Some(happening) = self.lab.next(left) else {
                bail!("waited for {what} for {:?}{}", self.timeout, self.output());
            };
            self.note(happening)?;
        }
        Ok(())
    }

    fn note(&mut self, Happening { what, .. }: Happening) -> Result<()> {
        match what {
            What::Console { name, bytes } => {
                self.consoles.entry(name).or_default().push_str(&String::from_utf8_lossy(&bytes));
            }
            What::HostLine(line) | What::EmulatorLine(line) => self.host_lines.push(line),
            What::Ended(ending) => bail!("the machine ended before its guests: {ending}{}", self.output()),
            _ => {}
        }
        Ok(())
    }

    /// Replaces the image, and records the output of the meantime.
    fn update(&mut self) -> Result<()> {
        let body = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };
        match self.lab.client()?.request_within(self.timeout, body)? {
            ReplyBody::Updated(_) => {}
            other => bail!("not the answer to an update: {other:?}{}", self.output()),
        }
        while let Some(happening) = self.lab.next(Duration::ZERO) {
            self.note(happening)?;
        }
        Ok(())
    }

    fn output(&self) -> String {
        let consoles: Vec<String> =
            self.consoles.iter().map(|(name, text)| format!("{name} printed\n{text}")).collect();
        format!("\n{}\nThe host logged\n{}", consoles.join("\n"), self.host_lines.join("\n"))
    }
}

fn host(context: &Context, setup: &Setup) -> Result<HostSetup> {
    let (tasks, ms) = (setup.tasks, setup.computes_ms);
    let (kernel, initrd) = (context.made("target/kernels/default/vmlinuz")?, context.made("target/guests/perf.cpio")?);
    let guest = |(name, pmu): &(&str, Pmu)| Guest {
        initrd: Some(initrd.clone()),
        cmdline: format!("console=ttyS0 quiet nmi_watchdog=0 perf={tasks} ms={ms} period={PERIOD}"),
        pmu: *pmu,
        ..guest(name, kernel.clone(), GUEST_MEMORY)
    };
    let memory = Size { bytes: HOST_MEMORY.bytes + setup.guests.len() as u64 * GUEST_MEMORY.bytes };
    Ok(HostSetup {
        guests: setup.guests.iter().map(guest).collect(),
        image: Image::Usual,
        options: format!("tsc=skip vpmu={}", setup.policy),
        extra: Clock::Instructions.arguments(),
        ..HostSetup::new(memory)
    })
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host that is replaced under guests that watch what they lose.

use std::time::Duration;

use anyhow::{Result, bail};
use baton::config::{Guest, Image};
use baton::size::Size;
use lab::{Lab, What};
use tempfile::TempDir;
use wire::{Refusal, ReplyBody, RequestBody, UpdateBy, UpdateReport};

use super::microseconds_in;
use crate::Context;
use crate::context::Build;
pub(super) use crate::exits::Clock;
use crate::setup::{HostSetup, keeper, temporary_folder};

/// Memory of the machine beyond its guests': for the host, and the next one beside it.
const HOST_MEMORY: Size = Size::mebibytes(256);
/// Memory up to this is in one piece.
const HOLE: Size = Size::mebibytes(4096);
/// The line of a running guest, and how many of them are awaited before a measurement.
const LINE: &str = "keeper: watch: ";
const LINES: usize = 2;
/// The line of a guest before it sleeps.
const GOING: &str = "keeper: wait: going";
/// The reason for which an update is refused where the emulator's threads wait for cores: one of the CPUs came too
/// late.
pub(crate) const TOO_LONG: &str = "waited too long";

/// A machine and its guests.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub cpus: u32,
    pub guests: u32,
    /// Of each guest.
    pub vcpus: u32,
    pub memory_mib: u64,
    /// Guests sleep instead of watching.
    pub is_idle: bool,
    pub clock: Clock,
    /// The host's.
    pub options: String,
    /// The image that the machine boots, and the one that replaces it.
    pub builds: [Build; 2],
    /// Bochs's model of the CPUs, for a machine in Bochs.
    pub bochs: Option<&'static str>,
}

impl Default for Setup {
    fn default() -> Self {
        let options = "tsc=skip".to_owned();
        Self {
            cpus: 1,
            guests: 1,
            vcpus: 1,
            memory_mib: 256,
            is_idle: false,
            clock: Clock::Cycles,
            options,
            builds: [Build::Shipped; 2],
            bochs: None,
        }
    }
}

impl Setup {
    fn host(&self, context: &Context) -> Result<HostSetup> {
        let guests = Size { bytes: (u64::from(self.guests) * self.memory_mib) << 20 };
        // A large guest's memory is in two pieces, and below 4 GiB the machine's own is in pieces, too.
        let spare = if guests.bytes < HOLE.bytes { HOST_MEMORY } else { HOLE };
        Ok(HostSetup {
            cpus: self.cpus,
            guests: (0..self.guests).map(|number| self.guest(context, number)).collect::<Result<_>>()?,
            build: self.builds[0],
            image: Image::Usual,
            next_build: self.builds[1],
            options: self.options.clone(),
            extra: self.clock.arguments(),
            bochs: self.bochs,
            ..HostSetup::new(Size { bytes: guests.bytes + spare.bytes })
        })
    }

    fn guest(&self, context: &Context, number: u32) -> Result<Guest> {
        let tasks = match self.is_idle {
            true => "do=wait".to_owned(),
            false => format!("seed=1 cpus={} do=watch", self.vcpus),
        };
        let guest = keeper(context, &tasks, Size::mebibytes(self.memory_mib))?;
        Ok(Guest { name: name_of(number), vcpus: self.vcpus, ..guest })
    }
}

/// The result of an update.
pub(crate) enum Attempt {
    /// The host was replaced.
    Updated(UpdateReport),
    /// It was rolled back because a CPU waited too long; guests stood still for so many microseconds.
    WaitedTooLong(f64),
}

/// The machine that runs.
pub(crate) struct Hosted {
    lab: Lab,
    timeout: Duration,
    /// The first guest's output.
    console: String,
    tsc_hz: f64,
    _folder: TempDir,
}

impl Hosted {
    /// Starts the machine, and waits for its guests.
    pub fn start(context: &Context, setup: &Setup) -> Result<Self> {
        let folder = temporary_folder()?;
        let lab = setup.host(context)?.start_in(context, folder.path())?;
        let (timeout, console) = (context.timeout, String::new());
        let mut this = Self { lab, timeout, console, tsc_hz: 0.0, _folder: folder };
        this.wait_ready(setup)?;
        this.tsc_hz = this.lab.client()?.info()?.tsc_hz as f64;
        Ok(this)
    }

    /// Asks for an update.
    ///
    /// # Errors
    ///
    /// It was refused for another reason than [`TOO_LONG`].
    pub fn attempt(&mut self) -> Result<Attempt> {
        let body = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };
        match self.lab.client()?.request_within(self.timeout, body) {
            Ok(ReplyBody::Updated(report)) => Ok(Attempt::Updated(report)),
            Ok(other) => bail!("not the answer to an update: {other:?}"),
            Err(error) => match error.downcast_ref::<Refusal>() {
                Some(refusal) if refusal.reason.contains(TOO_LONG) => {
                    Ok(Attempt::WaitedTooLong(microseconds_in(&refusal.reason)?))
                }
                _ => Err(error),
            },
        }
    }

    /// Asks for an update that fails; returns the guests' pause in microseconds.
    pub fn rolled_back_us(&self) -> Result<f64> {
        microseconds_in(&self.refusal()?)
    }

    /// Asks for an update that fails; returns the host's reason.
    pub fn refusal(&self) -> Result<String> {
        let body = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };
        match self.lab.client()?.request_within(self.timeout, body) {
            Ok(other) => bail!("the update was to fail: {other:?}"),
            Err(error) => match error.downcast_ref::<Refusal>() {
                Some(refusal) => Ok(refusal.reason.clone()),
                None => Err(error),
            },
        }
    }

    /// Returns the number of images that have run, and the bytes of free memory.
    pub fn generation_and_free_bytes(&self) -> Result<(u64, u64)> {
        let info = self.lab.client()?.info()?;
        Ok((info.generation, info.memory_free_bytes))
    }

    /// Converts a time to ticks of the machine's time stamp counter.
    pub fn ticks(&self, nanoseconds: u64) -> Result<f64> {
        if self.tsc_hz <= 0.0 {
            bail!("the host does not know its clock");
        }
        Ok((nanoseconds as f64 * self.tsc_hz / 1e9).round())
    }

    /// The longest that a CPU of the guest was away from its work, in microseconds: since this was last asked
    /// for.
    pub fn longest_away_us(&mut self) -> Result<f64> {
        self.listen_until(LINE, LINES)?;
        let end = self.console.rfind('\n').map_or(0, |end| end + 1);
        let lines: String = self.console.drain(..end).collect();
        if lines.contains("WRONG") {
            bail!("the guest has lost something: {lines}");
        }
        let ticks = lines.lines().filter_map(|line| line.split(LINE).nth(1)?.split(':').nth(1));
        let ticks = ticks.flat_map(|line| line.split_whitespace().filter_map(|word| word.parse::<f64>().ok()));
        Ok(ticks.fold(0.0, f64::max) * 1e6 / self.tsc_hz)
    }

    fn wait_ready(&mut self, setup: &Setup) -> Result<()> {
        if setup.is_idle { self.listen_until(GOING, 1) } else { self.listen_until(LINE, LINES) }
    }

    /// Waits until the first guest has printed `text` `times` times since its output was last taken.
    fn listen_until(&mut self, text: &str, times: usize) -> Result<()> {
        let is_there = |console: &str| {
            let whole = console.rfind('\n').map_or("", |end| &console[..end]);
            whole.matches(text).count() >= times
        };
        let until = self.lab.elapsed() + self.timeout;
        let mut lines = Vec::new();
        while !is_there(&self.console) {
            let left = until.checked_sub(self.lab.elapsed()).filter(|left| !left.is_zero());
            match left.and_then(|left| self.lab.next(left)).map(|happening| happening.what) {
                Some(What::Console { name, bytes }) if name == name_of(0) => {
                    self.console.push_str(&String::from_utf8_lossy(&bytes));
                }
                Some(What::HostLine(line)) => lines.push(line),
                Some(What::Ended(ending)) => bail!("the machine ended: {ending}: {}", lines.join("\n")),
                Some(_) => {}
                None => {
                    bail!(
                        "the guest did not print {text:?} {times} times; raise --timeout on a slow machine: {}",
                        lines.join("\n")
                    )
                }
            }
        }
        Ok(())
    }
}

fn name_of(guest: u32) -> String {
    format!("keeper{guest}")
}

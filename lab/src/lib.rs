// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab: Baton in an emulator, with all its output as one stream of happenings.
//!
//! ```text
//!                       ┌──────────── Lab ────────────┐
//!  QEMU ── COM1 ────────┤ Process: lines, time stamps ├──► Happenings: up's screen, tests, benches
//!       ── COM2 ────────┤ Broker                      │
//!                       └────┬────────────────────────┘
//!                       control.sock: any number of clients (`baton vm list`, …)
//! ```
//!
//! The control channel is one stream of bytes, and has several clients at once. So the lab owns and shares it:
//! see [`broker`].

use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use baton::client::Client;
use baton::running::CONTROL_SOCKET;
use wire::Event;

use self::shutdown::Cause;
use self::start::Started;

pub mod accesses;
pub mod blackouts;
pub mod bochs;
pub mod bound;
pub mod broker;
pub mod browser;
pub mod checks;
mod cpu_time;
pub mod crowd;
pub mod datagrams;
pub mod disk_use;
pub mod echo;
mod ending;
mod hardware;
pub mod initramfs;
pub mod inside;
mod kvm;
mod machine;
mod process;
pub mod qmp;
mod router;
pub mod rundir;
pub mod screen;
mod shutdown;
mod start;

pub use cpu_time::CpuTime;
pub use ending::Ending;
pub use hardware::{Hardware, version_of};
pub use machine::{Accelerator, Emulator, EmulatorKind, Machine, default_qemu};
pub use process::{Line, Process, Source};
pub use rundir::RunDir;

/// The line by which the demo's guest shows that its userspace runs; printed by the guests' agent.
pub const GREETING: &str = "Hello from a guest of Baton";

/// The interval at which an emulator without output is checked for its end.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Something that happened in the lab.
#[derive(Clone, Debug, PartialEq)]
pub struct Happening {
    /// The time since the emulator was started.
    pub at: Duration,
    /// The event.
    pub what: What,
}

/// An event in the lab.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// The host wrote a line to COM1: its log.
    HostLine(String),
    /// The emulator itself wrote a line.
    EmulatorLine(String),
    /// A guest wrote to its console.
    Console {
        /// The guest.
        name: String,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// The host reported an event.
    Event(Event),
    /// The host has answered for the first time.
    Ready,
    /// The broker reports a dropped client or a damaged frame.
    Note(String),
    /// The emulator has ended; nothing comes behind this.
    Ended(Ending),
}

/// A running lab machine. Dropping it ends the emulator.
pub struct Lab {
    process: Process,
    cause: Cause,
    happenings: Receiver<Happening>,
    broker: Option<JoinHandle<()>>,
    /// Closing it stops the broker.
    stop: Option<UnixStream>,
    ending: Option<Ending>,
    emulator_lines: Vec<String>,
    started: Instant,
    dir: RunDir,
}

impl Lab {
    /// Starts `machine`; sockets are made in `dir`. Where the program calls [`bound::play`], the emulator ends with the
    /// calling thread.
    pub fn start(machine: &Machine, dir: RunDir) -> Result<Self> {
        let started = Instant::now();
        let (sender, happenings) = mpsc::channel();
        let clients = dir.bind(CONTROL_SOCKET)?;
        let Started { process, control, cause } =
            start::start(machine, &dir, sender.clone()).map_err(|error| start::with_output(error, &happenings))?;
        let (stop, stopped) = UnixStream::pair()?;
        let at = move || started.elapsed();
        let notify = move |what| drop(sender.send(Happening { at: at(), what }));
        let broker = thread::spawn(move || broker::run(control, clients, stopped, notify));
        let (broker, stop) = (Some(broker), Some(stop));
        let (ending, emulator_lines) = (None, Vec::new());
        Ok(Self { process, cause, happenings, broker, stop, ending, emulator_lines, started, dir })
    }

    /// Returns the next happening, or `None` if there is none within `timeout`. None follows [`What::Ended`].
    pub fn next(&mut self, timeout: Duration) -> Option<Happening> {
        let deadline = Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.happenings.recv_timeout(left.min(CHECK_INTERVAL)) {
                Ok(happening) => {
                    if let What::EmulatorLine(line) = &happening.what {
                        self.emulator_lines.push(line.clone());
                    }
                    return Some(happening);
                }
                Err(RecvTimeoutError::Disconnected) => return self.end(),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => return None,
                Err(RecvTimeoutError::Timeout) => self.stop_broker_behind_emulator(),
            }
        }
    }

    /// Returns happenings up to and including the first that `wanted` accepts.
    ///
    /// # Errors
    ///
    /// There is none within `timeout`, or the machine has ended.
    pub fn wait_for(&mut self, timeout: Duration, wanted: impl Fn(&What) -> bool) -> Result<Vec<Happening>> {
        let deadline = Instant::now() + timeout;
        let mut seen = Vec::new();
        while let Some(happening) = self.next(deadline.saturating_duration_since(Instant::now())) {
            let (is_wanted, is_end) = (wanted(&happening.what), matches!(happening.what, What::Ended(_)));
            seen.push(happening);
            if is_wanted {
                return Ok(seen);
            }
            if is_end {
                break;
            }
        }
        bail!("the wanted event did not come within {timeout:?}; its events were {seen:#?}")
    }

    /// Returns a new client of the control channel.
    pub fn client(&self) -> Result<Client> {
        Client::connect(&self.dir.control_socket())
    }

    /// Returns the emulator's process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Returns the folder of the sockets.
    pub fn dir(&self) -> &RunDir {
        &self.dir
    }

    /// Returns the time since the emulator was started.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Ends the emulator at once; its remaining output can be read with [`Self::next`].
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Stops the broker once the emulator has ended: it is the last source of happenings.
    fn stop_broker_behind_emulator(&mut self) {
        if self.process.try_wait().is_some() {
            self.stop = None;
            if let Some(broker) = self.broker.take() {
                let _ = broker.join();
            }
        }
    }

    /// Reports the end, once.
    fn end(&mut self) -> Option<Happening> {
        if self.ending.is_some() {
            return None;
        }
        let ending = Ending::of(self.process.wait(), self.cause.get(), &self.emulator_lines);
        self.ending = Some(ending.clone());
        Some(Happening { at: self.elapsed(), what: What::Ended(ending) })
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.process.kill();
        self.stop = None;
        if let Some(broker) = self.broker.take() {
            let _ = broker.join();
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread that owns the line to a host. It opens the line again after each failure, reads the host at intervals,
//! takes the messages that the host sends unasked, and does the jobs of clients in between. Nothing that it waits for
//! keeps another host waiting.

mod reading;
mod unasked;

use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use baton::client::Client;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use wire::{HostInfo, Stream};

use super::{Choice, CpuTimes, Job, Link, News, Place, Shared, Snapshot};
use crate::clock;
use crate::history::Sampler;

/// The first pause before a line is opened again; it doubles up to the last one.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LAST_PAUSE: Duration = Duration::from_secs(15);
/// The delay after an event until the host is read again, so that the reading contains the change.
const AFTER_EVENT: Duration = Duration::from_millis(100);
/// A host is read for at most this part of the time, so that a slow line has room for others.
const SHARE: u32 = 10;
/// Messages that the host has sent unasked which are taken in one turn; then it is clients' turn.
const TURN: usize = 256;

/// The thread's own state.
pub(super) struct Owner {
    shared: Arc<Shared>,
    jobs: Receiver<Job>,
    woken: UnixStream,
    refresh: Duration,
    /// The time at which the host is read again.
    due: Instant,
    /// The earliest time at which it is read, whatever happens there.
    earliest: Instant,
    /// The host's last reading.
    last: Option<Place>,
    sampler: Sampler,
    cpu_times: CpuTimes,
    /// The time at which the host is asked for counters of a CPU again, so that they go on.
    count_due: Instant,
    /// The time at which the host's PCI functions are read again.
    pci_due: Instant,
    /// There are records and updates of which the history does not have the counts.
    is_counted: bool,
    /// The guests whose consoles the host sends.
    consoles: Choice,
}

/// All handles of the host are gone: the service ends.
struct Ended;

impl Owner {
    pub(super) fn new(shared: Arc<Shared>, jobs: Receiver<Job>, woken: UnixStream, refresh: Duration) -> Self {
        let (last, now) = (shared.records().counts.place, Instant::now());
        let sampler = Sampler::new(shared.history.interval());
        Self {
            shared,
            jobs,
            woken,
            refresh,
            due: now,
            earliest: now,
            last,
            sampler,
            cpu_times: CpuTimes::default(),
            count_due: now,
            pci_due: now,
            is_counted: false,
            consoles: Choice::default(),
        }
    }

    pub(super) fn run(mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match self.connect() {
                Ok(mut client) => {
                    pause = FIRST_PAUSE;
                    match self.converse(&mut client) {
                        Ok(Ended) => return self.keep_state(),
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            self.note_consoles(Choice::default());
            let before = self.shared.snapshot();
            let losses = before.losses + u64::from(before.link == Link::Connected);
            self.shared.set_snapshot(Snapshot::without_report(Link::Unreachable(format!("{error:#}")), losses));
            if self.rest(pause) {
                return self.keep_state();
            }
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    /// Waits before the next attempt; jobs that were too late are dropped, which their clients notice. Returns whether
    /// the service ends.
    fn rest(&self, pause: Duration) -> bool {
        let end = Instant::now() + pause;
        loop {
            match self.jobs.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(job) => drop(job),
                Err(RecvTimeoutError::Timeout) => return false,
                Err(RecvTimeoutError::Disconnected) => return true,
            }
        }
    }

    /// Opens the line and reads everything once: first the values that change, so that no change is missed.
    fn connect(&mut self) -> Result<Client> {
        let mut client = Client::reach(&self.shared.address, self.shared.key.clone())?;
        // The service ends in its own order; the settings of a serial port come back when the line is dropped.
        client.handles_signals();
        self.sampler.begin_again();
        self.subscribe(&mut client)?;
        self.read(&mut client)?;
        self.read_events(&mut client)?;
        self.read_log(&mut client)?;
        self.note_updates(&mut client)?;
        Ok(client)
    }

    fn converse(&mut self, client: &mut Client) -> Result<Ended> {
        loop {
            let (mut is_updated, mut count) = (false, 0);
            while count < TURN
                && let Some(stream) = client.next(Duration::ZERO)?
            {
                is_updated |= self.note(stream);
                count += 1;
            }
            if is_updated {
                self.note_updates(client)?;
            }
            match self.jobs.try_recv() {
                Ok(job) => {
                    ensure!(job(client), "the line was lost while a client used it");
                    continue;
                }
                Err(TryRecvError::Disconnected) => return Ok(Ended),
                Err(TryRecvError::Empty) => {}
            }
            if self.shared.take_reading_request() {
                self.due = self.due.min(self.earliest);
            }
            if Instant::now() >= self.due {
                self.read(client)?;
            } else if Instant::now() >= self.count_due {
                self.keep_counting(client)?;
            }
            self.keep_state();
            if !self.consoles.includes(&self.shared.consoles.choice()) {
                self.subscribe(client)?;
            }
            if count < TURN {
                // All that came before has been taken.
                self.shared.consoles.note_loss(client.take_lost_output());
                self.wait(client)?;
            }
        }
    }

    /// Keeps the counts that the history does not have yet.
    fn keep_state(&mut self) {
        if std::mem::take(&mut self.is_counted) {
            self.shared.keep_state();
        }
    }

    /// Waits for the host, for a client, or for the time of the next reading.
    fn wait(&mut self, client: &Client) -> Result<()> {
        let left = self.due.min(self.count_due).saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let mut fds = [PollFd::new(client, PollFlags::IN), PollFd::new(&self.woken, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !fds[1].revents().is_empty() {
            let _ = self.woken.read(&mut [0; 64]);
        }
        Ok(())
    }

    /// Notes the host's generation and uptime. Returns whether it runs the same image as before.
    fn note_place(&mut self, info: &HostInfo, is_connected: bool) -> Result<bool> {
        let HostInfo { generation, uptime_ns, .. } = *info;
        let booted_ms = clock::booted_ms(uptime_ns);
        let now = Place { generation, uptime_ns, booted_ms };
        let last = self.last.replace(now);
        // While there is a line, the clocks do not count: one of them may have been set.
        let is_back = |last: Place| (generation, uptime_ns) < (last.generation, last.uptime_ns);
        let is_again = last.is_some_and(|last| is_back(last) || !is_connected && last.is_before_power_on(now));
        self.shared.records().counts.place = Some(now);
        self.is_counted = true;
        if is_again {
            self.shared.records().counts.begin_again();
            self.shared.updates().sums.times.begin_again();
            self.sampler.begin_again();
            self.cpu_times.begin_again();
            // It knows of no subscription any more.
            ensure!(!is_connected, "the host was started again");
        }
        Ok(last.is_some_and(|last| last.generation == generation))
    }

    /// Returns the wall-clock time of a moment in the host's time.
    fn wall_ms(&self, time_ns: u64) -> u64 {
        self.last.map_or(0, |place| place.booted_ms).saturating_add(time_ns / 1_000_000)
    }

    fn read_events(&mut self, client: &mut Client) -> Result<()> {
        let mut place = 0;
        loop {
            let (events, next) = client.events(place)?;
            let is_last = events.is_empty() || next <= place;
            for event in events {
                self.note_event(event);
            }
            if is_last {
                return Ok(());
            }
            place = next;
        }
    }

    fn read_log(&mut self, client: &mut Client) -> Result<()> {
        let mut place = 0;
        loop {
            let (records, next) = client.log(place)?;
            let is_last = records.is_empty() || next <= place;
            for record in records {
                self.note(Stream::Log(record));
            }
            if is_last {
                return Ok(());
            }
            place = next;
        }
    }

    /// Notes the updates that the host's timeline shows, also those asked for elsewhere.
    fn note_updates(&mut self, client: &mut Client) -> Result<()> {
        let runs = baton::commands::timeline::host_runs(client)?;
        self.shared.updates().sums.times.observe(&runs);
        self.is_counted = true;
        // Answers that were read before are not reused.
        self.shared.keep_runs(runs);
        Ok(())
    }
}

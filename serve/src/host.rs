// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host as clients see it: its last report, and a queue for requests to it.
//!
//! A thread ([`owner`]) owns the line to the host. It reads the host at intervals and keeps the [`Snapshot`], so that
//! most questions, and every scrape of metrics, ask the host nothing. Anything else is a job in the thread's queue.

mod consoles;
mod cpu_times;
mod failure;
mod kept;
mod news;
mod owner;
mod readings;
mod records;
mod snapshot;
mod updating;

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use baton::client::Client;
use baton::connection::Address;
use baton::program::Kind;
use baton::timeline::Run;
use seal::SecretKey;
use tokio::sync::{broadcast, oneshot, watch};
use wire::{PciFunction, PciSurvey};

pub use self::consoles::{Choice, Consoles, Follower, Piece};
pub use self::cpu_times::{CpuShares, CpuTime, CpuTimes};
pub use self::failure::Failure;
pub use self::news::{NEWS, News};
pub use self::readings::Readings;
pub use self::records::{Counts, Kept, Place, Records};
pub use self::snapshot::{Link, PciUse, Snapshot, Status};
use crate::history::History;
use crate::updates::Updates;

/// The most jobs that wait for a host.
const QUEUE: usize = 64;
/// The time limit for a job, queue and host together: the line's own limits come first.
const PATIENCE: Duration = Duration::from_secs(60);
/// The age up to which an answer is given again.
const FRESH: Duration = Duration::from_secs(1);
/// A job for the thread that owns the line; returns whether the line is still good.
type Job = Box<dyn FnOnce(&mut Client) -> bool + Send>;

/// One host.
pub struct Host {
    /// Its name for clients.
    pub name: Arc<str>,
    /// State that is shared with the thread that owns its line.
    pub shared: Arc<Shared>,
    jobs: SyncSender<Job>,
    /// A byte here has the thread check its queue.
    wake: UnixStream,
    thread: JoinHandle<()>,
}

/// State that the thread that owns the line keeps for clients.
pub struct Shared {
    name: Arc<str>,
    address: Address,
    /// The key that requests are signed with.
    key: Option<SecretKey>,
    snapshot: watch::Sender<Arc<Snapshot>>,
    /// True if a client has asked for a new one.
    is_reading_wanted: AtomicBool,
    records: Mutex<Records>,
    updates: Mutex<Updates>,
    /// The output of guests.
    pub consoles: Arc<Consoles>,
    runs: Cached<Vec<Run>>,
    pci: Cached<(PciSurvey, Vec<PciFunction>)>,
    news: broadcast::Sender<Arc<News>>,
    history: History,
}

/// An answer that is given again for a moment.
type Cached<T> = Mutex<Option<(Instant, Arc<T>)>>;

impl Host {
    /// Begins to reach a host.
    ///
    /// # Errors
    /// The system has no thread or no sockets left.
    pub fn start(
        name: &str,
        (address, key): (Address, Option<SecretKey>),
        refresh: Duration,
        (news, history): (broadcast::Sender<Arc<News>>, History),
    ) -> std::io::Result<Self> {
        let name: Arc<str> = name.into();
        let (jobs, queue) = sync_channel(QUEUE);
        let (wake, woken) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let shared = Arc::new(Shared::new(name.clone(), (address, key), news, history));
        let owner = owner::Owner::new(shared.clone(), queue, woken, refresh);
        let thread = thread::Builder::new().name(format!("host {name}")).spawn(|| owner.run())?;
        Ok(Self { name, shared, jobs, wake, thread })
    }

    /// Has the thread close the line and end: it does so once no client can queue a job any more.
    pub fn end(self) -> JoinHandle<()> {
        self.thread
    }

    /// Returns the last report of the host.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.shared.snapshot()
    }

    /// Returns the last report of the host, if there is a line to it.
    ///
    /// # Errors
    /// There is none; the reason.
    pub fn reached(&self) -> Result<Arc<Snapshot>, Failure> {
        let snapshot = self.snapshot();
        match &snapshot.link {
            Link::Connected => Ok(snapshot),
            link => Err(Failure::Unreachable(format!("{}: {link}", self.name))),
        }
    }

    /// Has the thread do something on the line, and waits for the end of it.
    ///
    /// # Errors
    /// There is no line, the queue is full, or the job fails.
    pub async fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Client) -> anyhow::Result<T> + Send + 'static,
    ) -> Result<T, Failure> {
        let answer = self.submit(job)?;
        match tokio::time::timeout(PATIENCE, answer).await {
            Ok(Ok(result)) => Ok(result?),
            Ok(Err(_)) => Err(Failure::Unreachable(format!("{}: the line was lost", self.name))),
            Err(_) => {
                let name = &self.name;
                Err(Failure::Busy(format!(
                    "{name} did not answer within {PATIENCE:?}; an order may still be carried out"
                )))
            }
        }
    }

    /// Puts a job into the queue; the answer comes through the channel. A job for which no client waits any more when
    /// its turn comes is left out.
    ///
    /// # Errors
    /// There is no line, or the queue is full.
    pub fn submit<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Client) -> anyhow::Result<T> + Send + 'static,
    ) -> Result<oneshot::Receiver<anyhow::Result<T>>, Failure> {
        self.reached()?;
        let (answer, receiver) = oneshot::channel();
        let job = move |client: &mut Client| {
            if answer.is_closed() {
                return true;
            }
            let result = job(client);
            let is_lost = result.as_ref().is_err_and(|error| Kind::of(error) == Kind::Unreachable);
            let _ = answer.send(result);
            !is_lost
        };
        match self.jobs.try_send(Box::new(job)) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                return Err(Failure::Busy(format!("{}: {QUEUE} requests wait already; try again", self.name)));
            }
            Err(TrySendError::Disconnected(_)) => {
                return Err(Failure::Unreachable(format!("{}: the service ends", self.name)));
            }
        }
        self.wake();
        Ok(receiver)
    }

    /// Has the thread check its queue, and whether a client follows a console or waits for a reading.
    fn wake(&self) {
        // A full socket has enough bytes to wake it.
        let _ = (&self.wake).write(&[0]);
    }

    /// Follows the consoles of these guests; `None`: of all.
    pub fn follow(&self, names: Option<Vec<String>>) -> Follower {
        let follower = self.shared.consoles.follow(names);
        self.wake();
        follower
    }

    /// Returns its boot, restarts and updates as its timeline has them.
    ///
    /// # Errors
    /// As [`Host::ask`].
    pub async fn runs(&self) -> Result<Arc<Vec<Run>>, Failure> {
        let shared = self.shared.clone();
        self.ask(move |client| fresh(&shared.runs, || baton::commands::timeline::host_runs(client))).await
    }

    /// Returns its PCI functions.
    ///
    /// # Errors
    /// As [`Host::ask`].
    pub async fn pci(&self) -> Result<Arc<(PciSurvey, Vec<PciFunction>)>, Failure> {
        let shared = self.shared.clone();
        self.ask(move |client| fresh(&shared.pci, || client.pci())).await
    }
}

/// Returns the answer of a moment ago, or else asks again.
fn fresh<T>(cached: &Cached<T>, ask: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<Arc<T>> {
    if let Some((_, answer)) = locked(cached).as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
        return Ok(answer.clone());
    }
    let answer = Arc::new(ask()?);
    *locked(cached) = Some((Instant::now(), answer.clone()));
    Ok(answer)
}

/// Locks; a thread that has panicked in between has left nothing half done that matters.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn new(
        name: Arc<str>,
        (address, key): (Address, Option<SecretKey>),
        news: broadcast::Sender<Arc<News>>,
        history: History,
    ) -> Self {
        let (records, updates) = kept::restored(&history, &name);
        Self {
            name,
            address,
            key,
            snapshot: watch::Sender::default(),
            is_reading_wanted: AtomicBool::new(false),
            records: Mutex::new(records),
            updates: Mutex::new(updates),
            consoles: Arc::default(),
            runs: Mutex::default(),
            pci: Mutex::default(),
            news,
            history,
        }
    }

    /// Returns the last report of the host.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.borrow().clone()
    }

    /// Returns the host's line in a listing of all hosts.
    pub fn status(&self) -> Status {
        self.snapshot().status(&self.name, &self.address)
    }

    /// Locks the records of log and events.
    pub fn records(&self) -> MutexGuard<'_, Records> {
        locked(&self.records)
    }

    /// Locks the updates.
    pub fn updates(&self) -> MutexGuard<'_, Updates> {
        locked(&self.updates)
    }

    /// Notifies clients, if there are any.
    pub fn publish(&self, news: News) {
        let _ = self.news.send(Arc::new(news));
    }

    fn set_snapshot(&self, snapshot: Snapshot) {
        self.snapshot.send_replace(Arc::new(snapshot));
        self.publish(News::Status(self.status()));
    }
}

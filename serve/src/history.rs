// SPDX-License-Identifier: MIT OR Apache-2.0
//! The history: events, logs and metrics of hosts, kept over restarts of hosts and of the service.
//!
//! A thread of its own writes, and no caller waits for it. A file that cannot be written stops
//! neither the service nor a host: the history goes on without it, reports why, and tries again.

mod error;
mod sample;
mod store;
mod writer;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use utoipa::ToSchema;

pub use self::error::HistoryError;
pub use self::sample::{METRICS, Sample, Sampler};
pub use self::store::{Item, Kind, Span};
use self::store::{Limits, Store};
use self::writer::{Message, Writer};
use crate::options::HistoryOptions;

/// Items that wait for the writer; more are lost.
const QUEUE: usize = 8192;
/// Readings at a time; others wait.
const READERS: usize = 4;
/// The pause before a full queue is tried again at the end.
const PAUSE: Duration = Duration::from_millis(10);
/// The most bytes that are kept in memory.
const MAX_MEMORY_BYTES: u64 = 8 << 20;

/// The history of all hosts.
#[derive(Clone)]
pub struct History {
    queue: SyncSender<Message>,
    shared: Arc<Shared>,
}

/// State that the writer and its readers share.
struct Shared {
    options: HistoryOptions,
    limits: Limits,
    kept: Mutex<Kept>,
    dropped: AtomicU64,
    readers: Semaphore,
}

#[derive(Default)]
struct Kept {
    store: Option<Arc<Store>>,
    problem: Option<HistoryError>,
    moved: Option<String>,
    failures: u64,
    bytes: u64,
}

/// The state of the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct HistoryHealth {
    /// Its file; `null` if it is kept in memory, until the service ends.
    pub file: Option<String>,
    /// Everything is kept.
    pub is_kept: bool,
    /// The reason why nothing is kept.
    pub problem: Option<String>,
    /// A damaged file that was moved aside, and the damage.
    pub moved_aside: Option<String>,
    /// Bytes that are kept.
    pub bytes: u64,
    /// Records that could not be kept.
    pub dropped: u64,
    /// The number of times that the file could not be used.
    pub failures: u64,
}

impl History {
    /// Opens the file that the options name, and begins to write.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start(options: &HistoryOptions) -> io::Result<Self> {
        let bytes = u64::from(options.history_size) << 20;
        let bytes = if options.history.is_some() { bytes } else { bytes.min(MAX_MEMORY_BYTES) };
        let shared = Arc::new(Shared {
            limits: Limits { bytes, age: options.age() },
            options: options.clone(),
            kept: Mutex::default(),
            dropped: AtomicU64::new(0),
            readers: Semaphore::new(READERS),
        });
        shared.open();
        let (sender, queue) = sync_channel(QUEUE);
        let writer = Writer::new(shared.clone());
        thread::Builder::new().name("history".to_owned()).spawn(move || writer.run(&queue))?;
        Ok(Self { queue: sender, shared })
    }

    /// Queues an item to be kept; never waits.
    pub fn keep(&self, item: Item) {
        if self.queue.try_send(Message::Item(item)).is_err() {
            self.shared.lose(1);
        }
    }

    /// Has everything written that was queued, and the file closed. Returns whether that was done in this time. Nothing
    /// is kept afterwards.
    pub fn close(&self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        let (closed, is_closed) = sync_channel(1);
        let mut message = Message::Close(closed);
        while let Err(error) = self.queue.try_send(message) {
            match error {
                TrySendError::Full(again) if Instant::now() < end => message = again,
                _ => return false,
            }
            thread::sleep(PAUSE);
        }
        is_closed.recv_timeout(end.saturating_duration_since(Instant::now())).is_ok()
    }

    /// Returns the kept state of a host, if it can be read.
    pub fn state<T: DeserializeOwned>(&self, host: &str) -> Option<T> {
        self.shared.store().ok()?.state(host).ok()?
    }

    /// Returns the newest records of a host, oldest first, as far as they can be read.
    pub fn last<T: DeserializeOwned>(&self, kind: Kind, host: &str, limit: usize) -> Vec<T> {
        self.shared.store().and_then(|store| store.last(kind, host, limit)).unwrap_or_default()
    }

    /// Returns the records of a time, with their times, oldest first.
    ///
    /// # Errors
    /// The history is not kept, or cannot be read.
    pub async fn read<T: DeserializeOwned + Send + 'static>(
        &self,
        kind: Kind,
        (host, from_ms, to_ms, limit): (String, u64, u64, usize),
    ) -> Result<Vec<(u64, T)>, HistoryError> {
        let store = self.shared.store()?;
        // The semaphore is never closed.
        let _turn = self.shared.readers.acquire().await;
        let read = move || store.read(kind, &Span { host: &host, from_ms, to_ms, limit });
        let failed = |error: tokio::task::JoinError| HistoryError::Failed {
            place: self.shared.place(),
            reason: error.to_string(),
        };
        tokio::task::spawn_blocking(read).await.map_err(failed)?
    }

    /// Returns the time between two samples.
    pub fn interval(&self) -> Duration {
        self.shared.options.history_interval
    }

    /// Returns its state.
    pub fn health(&self) -> HistoryHealth {
        let kept = self.shared.kept();
        HistoryHealth {
            file: self.shared.options.history.as_ref().map(|path| path.display().to_string()),
            is_kept: kept.store.is_some(),
            problem: kept.problem.as_ref().map(ToString::to_string),
            moved_aside: kept.moved.clone(),
            bytes: kept.bytes,
            dropped: self.shared.dropped.load(Ordering::Relaxed),
            failures: kept.failures,
        }
    }
}

impl Shared {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self) -> String {
        self.options.history.as_ref().map_or_else(|| "in memory".to_owned(), |path| path.display().to_string())
    }

    /// Opens the file, and notes the result.
    fn open(&self) {
        let opened = match &self.options.history {
            Some(path) => Store::open(path, self.limits),
            None => Store::in_memory(self.limits).map(|store| (store, None)),
        };
        match opened {
            Ok((store, moved)) => {
                let mut kept = self.kept();
                (kept.store, kept.problem) = (Some(Arc::new(store)), None);
                if let Some((aside, damage)) = moved {
                    let text = format!("{damage}; it is {} now, and another was begun", aside.display());
                    eprintln!("baton serve: {text}");
                    kept.failures += 1;
                    kept.moved = Some(text);
                }
            }
            Err(error) => self.fail(error),
        }
    }

    /// Notes a failure; the file is closed.
    fn fail(&self, error: HistoryError) {
        let mut kept = self.kept();
        if kept.problem.as_ref() != Some(&error) {
            eprintln!("baton serve: {error}; records are not kept meanwhile");
        }
        kept.failures += 1;
        (kept.store, kept.problem) = (None, Some(error));
    }

    fn lose(&self, count: usize) {
        self.dropped.fetch_add(count as u64, Ordering::Relaxed);
    }

    fn store(&self) -> Result<Arc<Store>, HistoryError> {
        let kept = self.kept();
        let unknown = || HistoryError::Failed { place: self.place(), reason: "it is not open".to_owned() };
        kept.store.clone().ok_or_else(|| kept.problem.clone().unwrap_or_else(unknown))
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread that writes the history: the items of a short interval are one transaction.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use super::store::{Item, Store};
use super::{HistoryError, Shared};
use crate::clock;

/// The most records of a transaction.
const BATCH: usize = 1024;
/// The pause before a file that could not be used is opened again.
const RETRY: Duration = Duration::from_secs(10);
/// Old records are removed at this interval, and whenever this part of the size was written.
const PRUNE_EVERY: Duration = Duration::from_secs(300);
const PRUNE_PART: u64 = 16;

/// An order for the thread.
pub(super) enum Message {
    /// Keep this.
    Item(Item),
    /// Write everything, close the file, report that, and end.
    Close(SyncSender<()>),
}

/// The items of one transaction; with a sender they are the last.
type Batch = (Vec<Item>, Option<SyncSender<()>>);

/// The thread's own state.
pub(super) struct Writer {
    shared: Arc<Shared>,
    retry: Instant,
    prune: Instant,
    written: u64,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, retry: Instant::now() + RETRY, prune: Instant::now(), written: 0 }
    }

    /// Writes until the history is closed, or the last sender is gone.
    pub(super) fn run(mut self, queue: &Receiver<Message>) {
        while let Some((items, closed)) = batch(queue, self.shared.options.history_delay) {
            self.keep(&items);
            if let Some(closed) = closed {
                self.shared.kept().store = None;
                let _ = closed.send(());
                return;
            }
        }
    }

    fn keep(&mut self, items: &[Item]) {
        let Some(store) = self.store() else { return self.shared.lose(items.len()) };
        let result = self.write(&store, items);
        drop(store);
        if let Err(error) = result {
            self.shared.lose(items.len());
            self.shared.fail(error);
            self.retry = Instant::now() + RETRY;
        }
    }

    /// Returns the store, opened again if it is time for that.
    fn store(&mut self) -> Option<Arc<Store>> {
        let store = self.shared.store().ok();
        if store.is_some() || Instant::now() < self.retry {
            return store;
        }
        self.retry = Instant::now() + RETRY;
        self.shared.open();
        self.shared.store().ok()
    }

    fn write(&mut self, store: &Store, items: &[Item]) -> Result<(), HistoryError> {
        let limit = self.shared.limits.bytes;
        if !items.is_empty() {
            let bytes = store.write(items)?;
            self.written += bytes;
            self.shared.kept().bytes += bytes;
        }
        if Instant::now() >= self.prune || self.written >= limit / PRUNE_PART {
            let bytes = store.prune(clock::now_ms())?;
            self.shared.kept().bytes = bytes;
            (self.prune, self.written) = (Instant::now() + PRUNE_EVERY, 0);
        }
        Ok(())
    }
}

/// Takes the items of a short interval; `None` at the end. There may be none.
fn batch(queue: &Receiver<Message>, delay: Duration) -> Option<Batch> {
    let mut items = match queue.recv_timeout(PRUNE_EVERY) {
        Ok(Message::Item(item)) => vec![item],
        Ok(Message::Close(closed)) => return Some((Vec::new(), Some(closed))),
        Err(RecvTimeoutError::Timeout) => return Some((Vec::new(), None)),
        Err(RecvTimeoutError::Disconnected) => return None,
    };
    let end = Instant::now() + delay;
    while items.len() < BATCH {
        match queue.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(Message::Item(item)) => items.push(item),
            Ok(Message::Close(closed)) => return Some((items, Some(closed))),
            Err(_) => break,
        }
    }
    Some((items, None))
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of guests' consoles: the last bytes of each guest, numbered from the first one that came.
//!
//! A follower reads from its own place, so none has a queue: one that reads slowly loses the oldest bytes, and gets
//! their number. The host sends consoles only while a client follows one: on a serial line they take the time of
//! everything else.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch;
use utoipa::ToSchema;

#[cfg(test)]
mod tests;

/// The last bytes of a guest's console that are kept.
const MAX_BYTES: usize = 64 << 10;
/// The maximum number of guests of a host with a console that is kept; of more, those that wrote last.
const MAX_GUESTS: usize = 64;
/// The most bytes in one piece for a follower.
const PIECE_BYTES: usize = 16 << 10;

/// A piece of a console.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Piece {
    /// The number of the byte behind it: where the next piece begins.
    #[serde(skip)]
    pub end: u64,
    /// The guest's output, whole characters of UTF-8; each byte that is none is U+FFFD.
    pub text: String,
    /// Bytes before it that are lost to this client.
    pub lost: u64,
}

/// The consoles of a host's guests.
pub struct Consoles {
    kept: Mutex<BTreeMap<String, Ring>>,
    /// Changes whenever a guest has written.
    news: watch::Sender<()>,
    followers: AtomicUsize,
}

/// The last bytes of one guest.
#[derive(Default)]
struct Ring {
    bytes: VecDeque<u8>,
    /// The number of the byte behind the last one.
    end: u64,
}

/// A client that follows a console.
pub struct Follower {
    consoles: Arc<Consoles>,
    news: watch::Receiver<()>,
}

impl Default for Consoles {
    fn default() -> Self {
        Self { kept: Mutex::default(), news: watch::Sender::new(()), followers: AtomicUsize::new(0) }
    }
}

impl Consoles {
    /// Follows consoles from now on.
    pub fn follow(self: &Arc<Self>) -> Follower {
        self.followers.fetch_add(1, Ordering::Relaxed);
        Follower { consoles: self.clone(), news: self.news.subscribe() }
    }

    /// Returns whether a client follows a console.
    pub fn is_followed(&self) -> bool {
        self.followers.load(Ordering::Relaxed) > 0
    }

    /// Keeps the output of a guest.
    pub fn note(&self, guest: &str, bytes: &[u8]) {
        let mut kept = self.kept();
        if !kept.contains_key(guest) {
            make_place(&mut kept);
        }
        kept.entry(guest.to_owned()).or_default().push(bytes);
        drop(kept);
        self.news.send_replace(());
    }

    /// Marks in every console that is kept that nothing was received for a time.
    pub fn note_pause(&self, pause: Duration) {
        let mark = format!("\r\n[baton serve: nothing was received for {:.0} s]\r\n", pause.as_secs_f64());
        self.mark(&mark);
    }

    /// Marks in every console that is kept that bytes were lost, of which guest is unknown; nothing for none.
    pub fn note_loss(&self, bytes: u64) {
        if bytes > 0 {
            self.mark(&format!("\r\n[baton serve: {bytes} bytes of guests' output were lost]\r\n"));
        }
    }

    fn mark(&self, mark: &str) {
        self.kept().values_mut().for_each(|ring| ring.push(mark.as_bytes()));
        self.news.send_replace(());
    }

    /// Returns a guest's output from that byte on, at most a piece of it; `None` if there is nothing yet.
    pub fn read(&self, guest: &str, from: u64) -> Option<Piece> {
        self.kept().get(guest)?.read(from)
    }

    /// Locks the consoles; a thread that has panicked in between has left whole bytes.
    fn kept(&self) -> MutexGuard<'_, BTreeMap<String, Ring>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the shortest console if there are too many: of guests that have been removed, or that wrote little.
fn make_place(kept: &mut BTreeMap<String, Ring>) {
    if kept.len() >= MAX_GUESTS
        && let Some(name) = kept.iter().min_by_key(|(_, ring)| ring.bytes.len()).map(|(name, _)| name.clone())
    {
        kept.remove(&name);
    }
}

impl Ring {
    fn push(&mut self, bytes: &[u8]) {
        self.end += bytes.len() as u64;
        let bytes = &bytes[bytes.len().saturating_sub(MAX_BYTES)..];
        let excess = (self.bytes.len() + bytes.len()).saturating_sub(MAX_BYTES);
        self.bytes.drain(..excess);
        self.bytes.extend(bytes);
    }

    fn read(&self, from: u64) -> Option<Piece> {
        let oldest = self.end - self.bytes.len() as u64;
        // A place beyond the end is that of a service before this one.
        let from = if from > self.end { 0 } else { from };
        let start = from.max(oldest);
        let bytes: Vec<u8> = self.bytes.iter().skip((start - oldest) as usize).take(PIECE_BYTES).copied().collect();
        let whole = &bytes[..bytes.len() - unfinished(&bytes)];
        // At the beginning nothing is lost: the follower takes what there is.
        let lost = if from == 0 { 0 } else { start - from };
        (!whole.is_empty()).then(|| Piece {
            end: start + whole.len() as u64,
            text: String::from_utf8_lossy(whole).into_owned(),
            lost,
        })
    }
}

/// Returns the number of bytes at the end that begin a character of UTF-8 without finishing it.
fn unfinished(bytes: &[u8]) -> usize {
    let last = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    // An invalid chunk at the very end is either wrong by itself or the beginning of a character.
    let is_beginning = core::str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
    if is_beginning { last.len() } else { 0 }
}

impl Follower {
    /// Waits until a guest has written, since the last time.
    pub async fn changed(&mut self) {
        // The sender is in `consoles`.
        let _ = self.news.changed().await;
    }

    /// Returns the consoles.
    pub fn consoles(&self) -> &Consoles {
        &self.consoles
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.consoles.followers.fetch_sub(1, Ordering::Relaxed);
    }
}

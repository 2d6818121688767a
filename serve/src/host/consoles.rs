// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of guests' consoles: the last bytes of each guest, numbered from the first one that came.
//!
//! A follower reads from its own place, so none has a queue: one that reads slowly loses the oldest bytes, and gets
//! their number. The host sends a guest's output only while a client follows that guest: on a serial line it takes the
//! time of everything else.

mod followers;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde::Serialize;
use tokio::sync::watch;
use utoipa::ToSchema;

pub use self::followers::Choice;
use self::followers::Followers;

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
    followers: Mutex<Followers>,
}

/// The last bytes of one guest.
#[derive(Default)]
struct Ring {
    bytes: VecDeque<u8>,
    /// The number of the byte behind the last one.
    end: u64,
    /// The time from which on the host does not send this guest's output.
    paused: Option<Instant>,
}

/// A client that follows consoles.
pub struct Follower {
    consoles: Arc<Consoles>,
    /// The guests that it follows; `None`: all.
    names: Option<Vec<String>>,
    news: watch::Receiver<()>,
}

impl Default for Consoles {
    fn default() -> Self {
        Self { kept: Mutex::default(), news: watch::Sender::new(()), followers: Mutex::default() }
    }
}

impl Consoles {
    /// Follows the consoles of these guests from now on; `None`: of all.
    pub fn follow(self: &Arc<Self>, names: Option<Vec<String>>) -> Follower {
        self.followers().add(names.as_deref());
        Follower { consoles: self.clone(), news: self.news.subscribe(), names }
    }

    /// Returns the guests that clients follow.
    pub fn choice(&self) -> Choice {
        self.followers().choice()
    }

    /// Notes the guests whose output the host sends from now on. A guest that comes back gets a mark with the time for
    /// which nothing was received; meanwhile the host has kept its newest output.
    pub fn note_choice(&self, sent: &Choice) {
        for (guest, ring) in self.kept().iter_mut() {
            if !sent.has(guest) {
                ring.paused.get_or_insert_with(Instant::now);
            } else if let Some(since) = ring.paused.take() {
                let seconds = since.elapsed().as_secs_f64();
                ring.push(format!("\r\n[baton serve: nothing was received for {seconds:.0} s]\r\n").as_bytes());
            }
        }
        self.news.send_replace(());
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

    /// Returns the number of the byte behind the last one of each guest's console.
    pub fn ends(&self) -> Vec<(String, u64)> {
        self.kept().iter().map(|(guest, ring)| (guest.clone(), ring.end)).collect()
    }

    /// Returns the number of clients that follow a guest's console.
    pub fn followers_of(&self, guest: &str) -> usize {
        self.followers().count(guest)
    }

    /// Returns a guest's output from that byte on as it came, at most a piece of it, the number of the byte behind it,
    /// and how many bytes before it are lost; `None` if there is nothing yet.
    pub fn read_bytes(&self, guest: &str, from: u64) -> Option<(Vec<u8>, u64, u64)> {
        let kept = self.kept();
        let (bytes, start) = kept.get(guest)?.bytes_from(from);
        let lost = start.saturating_sub(from);
        (!bytes.is_empty()).then(|| (bytes.clone(), start + bytes.len() as u64, lost))
    }

    /// Locks the followers.
    fn followers(&self) -> MutexGuard<'_, Followers> {
        self.followers.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Returns at most a piece from that byte on, or from the oldest one that is kept, and the number of its first.
    fn bytes_from(&self, from: u64) -> (Vec<u8>, u64) {
        let oldest = self.end - self.bytes.len() as u64;
        let start = from.max(oldest);
        (self.bytes.iter().skip((start - oldest) as usize).take(PIECE_BYTES).copied().collect(), start)
    }

    fn read(&self, from: u64) -> Option<Piece> {
        // A place beyond the end is that of a service before this one.
        let from = if from > self.end { 0 } else { from };
        let (bytes, start) = self.bytes_from(from);
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

    /// Returns whether it follows this guest.
    pub fn has(&self, guest: &str) -> bool {
        self.names.as_ref().is_none_or(|names| names.iter().any(|name| name == guest))
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.consoles.followers().remove(self.names.as_deref());
    }
}

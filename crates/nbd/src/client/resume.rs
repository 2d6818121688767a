// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client's state as plain data, and a client that goes on from it.

use super::connection::{Link, Reply, Sending};
use super::state::Client;
use super::tags::{AGAIN, OWN_FLUSH};
use crate::export::Export;
use crate::journal::Kept;
use crate::limits::{PART_BYTES, REQUESTS};
use crate::request::{Command, Request, Slot, Stage};
use crate::saved::{SavedClient, SavedRequest, SavedWrite, Unfit};
use crate::wire;

impl Client {
    /// Returns its state, beside requests and journal. With changes in the journal the next client begins a new
    /// connection.
    pub fn save(&self) -> SavedClient {
        let mut saved = SavedClient {
            is_connected: self.keeps_connection(),
            sending: SavedClient::NONE,
            reading: SavedClient::NONE,
            sequence: self.sequence,
            cookie: self.cookie,
            flush: self.flush,
            ..SavedClient::default()
        };
        if let Some(export) = &self.export {
            (saved.bytes, saved.block) = (export.bytes, export.block);
            (saved.payload, saved.flags) = (export.payload, export.flags);
        }
        if saved.is_connected {
            if let Some(Sending { tag, sent }) = self.sending {
                (saved.sending, saved.sent) = (tag, sent);
            }
            if let Some((tag, read)) = self.reading {
                (saved.reading, saved.read) = (tag, read);
            }
            (saved.reply, saved.reply_bytes) = (self.reply.bytes, self.reply.got as u8);
        }
        saved
    }

    fn keeps_connection(&self) -> bool {
        let has_changes = self.journal.as_ref().is_some_and(|journal| journal.entries().next().is_some());
        self.is_up() && !self.is_stale && !has_changes
    }

    /// Returns its requests in flight.
    pub fn saved_requests(&self) -> impl Iterator<Item = SavedRequest> {
        let keeps = self.keeps_connection();
        let is_its = move |(tag, slot): &(usize, &Slot)| slot.stage != Stage::Free && (keeps || *tag < REQUESTS);
        self.slots.iter().enumerate().filter(is_its).map(move |(tag, slot)| self.saved_request(tag as u16, slot, keeps))
    }

    fn saved_request(&self, tag: u16, slot: &Slot, keeps: bool) -> SavedRequest {
        let stage = if keeps { slot.stage } else { Stage::Queued };
        SavedRequest {
            tag,
            command: slot.request.command.number(),
            stage: stage as u8,
            is_flushing: slot.is_flushing && keeps,
            offset: slot.request.offset,
            bytes: slot.request.bytes,
            done: slot.done,
            part: if stage == Stage::Queued { 0 } else { slot.part },
            sequence: slot.sequence,
            cookie: slot.cookie,
            waited_ns: self.waited_ns(slot.since_ns),
        }
    }

    /// Returns the acknowledged changes in the journal, and then the data of each in up to two pieces.
    pub fn saved_writes(&self) -> impl Iterator<Item = (SavedWrite, [&[u8]; 2])> {
        self.journal.iter().flat_map(|journal| {
            let answered = journal.entries().filter(|entry| matches!(entry.kept, Kept::Answered(_)));
            answered.map(|entry| {
                let saved = SavedWrite { command: entry.command.number(), offset: entry.offset, bytes: entry.bytes };
                (saved, journal.pieces(entry))
            })
        })
    }

    /// Goes on from a saved state; [`resume_request`](Self::resume_request), [`resume_write`](Self::resume_write) and
    /// [`check_resumed`](Self::check_resumed) follow.
    ///
    /// # Errors
    /// [`Unfit`]: no client can have made it. This client cannot be used afterwards.
    pub fn resume(&mut self, saved: &SavedClient) -> Result<(), Unfit> {
        if saved.block != 0 {
            let flags = saved.flags;
            let export = Export::new(saved.bytes, flags, Some((saved.block, saved.payload)));
            let export = export.map_err(|_| Unfit("blk.export", "no server can have stated it"))?;
            self.export = Some(export);
        }
        if usize::from(saved.reply_bytes) >= wire::REPLY_BYTES {
            return Err(Unfit("blk.reply", "it is whole"));
        }
        if saved.sequence > u64::MAX / 2 || saved.flush > u64::MAX / 2 {
            return Err(Unfit("blk.sequence", "no client has had so many requests"));
        }
        if saved.is_connected && self.export.is_none() {
            return Err(Unfit("blk.export", "there is a connection without one"));
        }
        (self.sequence, self.cookie, self.flush) = (saved.sequence, saved.cookie, saved.flush.max(1));
        self.is_resumed = true;
        if !saved.is_connected {
            self.is_stale = true;
            return Ok(());
        }
        (self.link, self.is_adopted) = (Link::Up, true);
        self.reply = Reply { bytes: saved.reply, got: saved.reply_bytes.into() };
        let tag = |tag: u16| (tag != SavedClient::NONE).then_some(tag);
        self.sending = tag(saved.sending).map(|tag| Sending { tag, sent: saved.sent });
        self.reading = tag(saved.reading).map(|tag| (tag, saved.read));
        Ok(())
    }

    /// Adds a request of a saved state.
    ///
    /// # Errors
    /// [`Unfit`], as [`resume`](Self::resume).
    pub fn resume_request(&mut self, saved: &SavedRequest) -> Result<(), Unfit> {
        let command = Command::of(saved.command).ok_or(Unfit("blk.request.command", "it is unknown"))?;
        let stage = Stage::ALL.get(usize::from(saved.stage)).copied().filter(|stage| *stage != Stage::Free);
        let stage = stage.ok_or(Unfit("blk.request.stage", "it is unknown"))?;
        let is_own = saved.tag == OWN_FLUSH && command != Command::Flush || saved.tag == AGAIN;
        let is_free = self.slots.get(usize::from(saved.tag)).is_some_and(|slot| slot.stage == Stage::Free);
        if !is_free || is_own {
            return Err(Unfit("blk.request.tag", "it is another request's, or no driver's"));
        }
        let is_flush = saved.is_flushing || command == Command::Flush;
        let part = if is_flush { 0 } else { saved.part };
        // A request outside the export fails once it is to be sent.
        let is_placed = stage == Stage::Queued || saved.offset.checked_add(saved.bytes.into()).is_some();
        let is_part = saved.done.checked_add(part).is_some_and(|end| end <= saved.bytes);
        if !is_placed || !is_part || saved.sequence >= self.sequence.max(1) {
            return Err(Unfit("blk.request", "its parts or its number do not fit"));
        }
        let request = Request { command, offset: saved.offset, bytes: saved.bytes };
        let slot = Slot {
            stage,
            request,
            done: saved.done,
            part: saved.part,
            is_flushing: saved.is_flushing,
            sequence: saved.sequence,
            cookie: saved.cookie,
            since_ns: 0u64.wrapping_sub(saved.waited_ns),
            ..Slot::FREE
        };
        if self.data_bytes(&slot) > PART_BYTES {
            return Err(Unfit("blk.request.part", "no client sends so much at once"));
        }
        *self.slot(saved.tag) = slot;
        self.busy |= 1u128.checked_shl(saved.tag.into()).unwrap_or(0);
        Ok(())
    }

    /// Adds an acknowledged change of a saved state; its data is copied into what `fill` is called with, a piece at a
    /// time.
    ///
    /// # Errors
    /// [`Unfit`], as [`resume`](Self::resume).
    pub fn resume_write(&mut self, saved: &SavedWrite, mut fill: impl FnMut(&mut [u8])) -> Result<(), Unfit> {
        let command = Command::of(saved.command).filter(|command| command.is_change());
        let command = command.ok_or(Unfit("blk.write.command", "it changes nothing"))?;
        let journal = self.journal.as_mut().ok_or(Unfit("blk.writes", "this device has no write-back cache"))?;
        let number = journal.add(command, saved.offset, saved.bytes);
        let number = number.ok_or(Unfit("blk.writes", "they are too many"))?;
        let mut at = 0;
        while at < saved.data_bytes() {
            let data = journal.data(number, at as u32);
            at += data.len();
            fill(data);
        }
        journal.set(number, Kept::Answered(self.flush));
        Ok(())
    }

    /// Checks a state as a whole.
    ///
    /// # Errors
    /// [`Unfit`], as [`resume`](Self::resume).
    pub fn check_resumed(&mut self) -> Result<(), Unfit> {
        let sending = self.slots.iter().filter(|slot| slot.stage == Stage::Sending).count();
        let is_sending = match self.sending {
            None => sending == 0,
            Some(Sending { tag, sent }) => {
                let slot = self.slots.get(usize::from(tag)).filter(|slot| slot.stage == Stage::Sending);
                let most = slot.map(|slot| wire::REQUEST_BYTES as u32 + self.data_bytes(slot));
                sending == 1 && most.is_some_and(|most| sent < most)
            }
        };
        let is_reading = self.reading.is_none_or(|(tag, at)| {
            let slot = self.slots.get(usize::from(tag));
            slot.is_some_and(|slot| slot.stage == Stage::Sent && slot.command() == Command::Read && at < slot.part)
        });
        if !is_sending || !is_reading {
            return Err(Unfit("blk.connection", "it is not where its requests are"));
        }
        if !self.is_up() && self.slots.iter().any(Slot::is_in_flight) {
            return Err(Unfit("blk.connection", "requests are in flight without one"));
        }
        Ok(())
    }
}

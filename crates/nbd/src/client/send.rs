// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sends requests to the server: one after the other, each with its data.

use super::budget::{Budget, TurnError};
use super::connection::Sending;
use super::state::Client;
use super::tags::{AGAIN, OWN_FLUSH};
use crate::export::Export;
use crate::limits::{JOURNAL_PART_BYTES, PART_BYTES, PIECE_BYTES};
use crate::request::{Command, Failure, Request, Slot, Stage};
use crate::stream::{Driver, Stream};
use crate::wire::{self, Header};

/// The action for the next request.
enum Next {
    /// Its header and then its data are sent.
    Send,
    /// It is done without the server.
    Done(Result<(), Failure>),
    /// It waits for room in the journal.
    Wait,
}

impl Client {
    /// Sends a piece; false if there is nothing to send, or no room.
    pub(super) fn send<S, D>(
        &mut self,
        stream: &mut S,
        driver: &mut D,
        budget: &mut Budget,
    ) -> Result<bool, TurnError<D::Fault>>
    where
        S: Stream + ?Sized,
        D: Driver + ?Sized,
    {
        let Some(Sending { tag, sent }) = self.sending else { return self.begin(driver) };
        let slot = *self.slot(tag);
        let header = self.header(&slot).encode();
        let data = self.data_bytes(&slot);
        let now = match header.get(sent as usize..).filter(|left| !left.is_empty()) {
            Some(left) => stream.send(left),
            None => self.send_data(tag, &slot, sent - wire::REQUEST_BYTES as u32, stream, driver)?,
        };
        budget.spend(now);
        let sent = sent + now as u32;
        self.sending = Some(Sending { tag, sent });
        if sent >= wire::REQUEST_BYTES as u32 + data {
            self.sending = None;
            self.slot(tag).stage = Stage::Sent;
        }
        Ok(now > 0)
    }

    fn header(&self, slot: &Slot) -> Header {
        let has_fua = self.export.is_some_and(|export| export.has_fua());
        let command = slot.command();
        let is_fua = has_fua && self.is_write_through() && (command.is_change() || command == Command::Trim);
        let is_written = self.has_data(slot);
        let (command, own) = match command {
            Command::Read => (wire::READ, 0),
            Command::Write => (wire::WRITE, 0),
            _ if is_written => (wire::WRITE, 0),
            Command::Flush => (wire::FLUSH, 0),
            Command::Trim => (wire::TRIM, 0),
            Command::WriteZeroes { may_trim } => (wire::WRITE_ZEROES, if may_trim { 0 } else { wire::NO_HOLE }),
        };
        let (offset, bytes) = match command {
            wire::FLUSH => (0, 0),
            _ => (slot.request.offset + u64::from(slot.done), slot.part),
        };
        Header { flags: own | if is_fua { wire::FUA } else { 0 }, command, cookie: slot.cookie, offset, bytes }
    }

    /// Returns whether data follows its header: that of a write, or zeroes for a server that does not write them by
    /// itself.
    fn has_data(&self, slot: &Slot) -> bool {
        match slot.command() {
            Command::Write => true,
            Command::WriteZeroes { .. } => !self.export.is_some_and(|export| export.can_write_zeroes()),
            _ => false,
        }
    }

    /// Returns the number of bytes of data behind its header.
    pub(super) fn data_bytes(&self, slot: &Slot) -> u32 {
        if self.has_data(slot) { slot.part } else { 0 }
    }

    fn send_data<S, D>(
        &mut self,
        tag: u16,
        slot: &Slot,
        at: u32,
        stream: &mut S,
        driver: &mut D,
    ) -> Result<usize, TurnError<D::Fault>>
    where
        S: Stream + ?Sized,
        D: Driver + ?Sized,
    {
        let mut piece = [0; PIECE_BYTES];
        let most = PIECE_BYTES.min(slot.part.saturating_sub(at) as usize);
        match (slot.kept, &mut self.journal, slot.command()) {
            (Some(number), Some(journal), Command::Write) => {
                let data = journal.data(number, at);
                let most = most.min(data.len());
                return Ok(stream.send(&data[..most]));
            }
            (_, _, Command::Write) => {
                driver.read(tag, slot.done + at, &mut piece[..most]).map_err(TurnError::Driver)?
            }
            _ => {}
        }
        Ok(stream.send(&piece[..most]))
    }

    /// Chooses the next request; true if there was one.
    fn begin<D: Driver + ?Sized>(&mut self, driver: &mut D) -> Result<bool, TurnError<D::Fault>> {
        let (Some(tag), Some(export)) = (self.choose(), self.export) else { return Ok(false) };
        let next = match tag {
            OWN_FLUSH | AGAIN => Next::Send,
            _ => self.prepare(tag, &export, driver)?,
        };
        match next {
            Next::Wait => return Ok(self.flush_soon()),
            Next::Done(result) => self.complete(tag, result, driver)?,
            Next::Send => self.dispatch(tag),
        }
        Ok(true)
    }

    fn dispatch(&mut self, tag: u16) {
        if !self.slots.iter().any(Slot::is_in_flight) {
            self.moved_ns = self.now_ns;
        }
        self.cookie = self.cookie.wrapping_add(1);
        let (cookie, flush) = (self.cookie << 16 | u64::from(tag), self.flush);
        let slot = self.slot(tag);
        (slot.stage, slot.cookie) = (Stage::Sending, cookie);
        if slot.is_flush() {
            slot.flush = flush;
            self.flush += 1;
        }
        self.sending = Some(Sending { tag, sent: 0 });
    }

    /// Returns the request that is sent next: what is written again comes first, and alone; then a flush that makes
    /// room.
    fn choose(&mut self) -> Option<u16> {
        if let Some((number, entry)) = self.journal.as_mut().and_then(|journal| journal.again()) {
            let again = self.slot(AGAIN);
            if again.stage != Stage::Free {
                return None;
            }
            let request = Request { command: entry.command, offset: entry.offset, bytes: entry.bytes };
            *again = Slot { stage: Stage::Queued, request, part: entry.bytes, kept: Some(number), ..Slot::FREE };
            return Some(AGAIN);
        }
        if self.journal.as_ref().is_some_and(|journal| journal.is_filling()) {
            self.flush_soon();
        }
        if self.slot(OWN_FLUSH).stage == Stage::Queued {
            return Some(OWN_FLUSH);
        }
        let queued = self.tags().filter(|tag| self.slots[usize::from(*tag)].stage == Stage::Queued);
        queued.min_by_key(|tag| self.slots[usize::from(*tag)].sequence)
    }

    /// Queues a flush of the client's own, unless it would make no room, or one is on its way.
    fn flush_soon(&mut self) -> bool {
        let flushes = self.slots.iter().filter(|slot| slot.is_in_flight() && slot.is_flush()).map(|slot| slot.flush);
        let newest = flushes.max().unwrap_or(0);
        let is_useful = self.journal.as_ref().is_some_and(|journal| journal.wants_flush_after(newest));
        let own = self.slot(OWN_FLUSH);
        if own.stage != Stage::Free || !is_useful {
            return false;
        }
        *own = Slot { stage: Stage::Queued, ..Slot::FREE };
        true
    }

    /// Checks a request, and sets the part of it that is sent now.
    fn prepare<D>(&mut self, tag: u16, export: &Export, driver: &mut D) -> Result<Next, TurnError<D::Fault>>
    where
        D: Driver + ?Sized,
    {
        let slot = *self.slot(tag);
        let Request { command, offset, bytes } = slot.request;
        let is_whole = [offset, bytes.into()].iter().all(|value| value.is_multiple_of(export.block.into()));
        let is_there = offset.checked_add(bytes.into()).is_some_and(|end| end <= export.bytes);
        let is_nothing = match slot.command() {
            Command::Flush => !export.can_flush(),
            Command::Trim => !export.can_trim() || bytes == 0,
            _ => bytes == 0,
        };
        if (command.is_change() || command == Command::Trim) && self.config.is_read_only {
            return Ok(Next::Done(Err(Failure::ReadOnly)));
        }
        if !is_whole || !is_there {
            return Ok(Next::Done(Err(Failure::Range)));
        }
        if is_nothing {
            return Ok(Next::Done(Ok(())));
        }
        let most = if self.journal.is_some() { JOURNAL_PART_BYTES } else { PART_BYTES };
        let has_payload = self.has_data(&slot) || command == Command::Read;
        let left = bytes - slot.done;
        let part = match slot.command() {
            Command::Flush => 0,
            _ if has_payload => left.min(most).min(export.payload),
            _ => left,
        };
        self.slot(tag).part = part;
        if command.is_change() { self.keep(tag, part, driver) } else { Ok(Next::Send) }
    }

    /// Adds a change to the journal, if there is one.
    fn keep<D>(&mut self, tag: u16, part: u32, driver: &mut D) -> Result<Next, TurnError<D::Fault>>
    where
        D: Driver + ?Sized,
    {
        let slot = *self.slot(tag);
        let Some(journal) = &mut self.journal else { return Ok(Next::Send) };
        let Request { command, offset, .. } = slot.request;
        let Some(number) = journal.add(command, offset + u64::from(slot.done), part) else { return Ok(Next::Wait) };
        self.slot(tag).kept = Some(number);
        let mut at = 0;
        while command == Command::Write && at < part {
            let Some(journal) = &mut self.journal else { break };
            let data = journal.data(number, at);
            if data.is_empty() {
                break;
            }
            driver.read(tag, slot.done + at, data).map_err(TurnError::Driver)?;
            at += data.len() as u32;
        }
        Ok(Next::Send)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Receives simple replies, and the data behind those of reads.

use super::budget::{Budget, TurnError};
use super::state::Client;
use super::tags::{AGAIN, OWN_FLUSH};
use crate::journal::Kept;
use crate::limits::PIECE_BYTES;
use crate::problem::Problem;
use crate::request::{Command, Failure, Stage};
use crate::stream::{Driver, Stream};
use crate::wire::{self, be32, be64};

impl Client {
    /// Receives a piece; false if there is none.
    pub(super) fn receive<S, D>(
        &mut self,
        stream: &mut S,
        driver: &mut D,
        budget: &mut Budget,
    ) -> Result<bool, TurnError<D::Fault>>
    where
        S: Stream + ?Sized,
        D: Driver + ?Sized,
    {
        if let Some((tag, at)) = self.reading {
            return self.receive_data((tag, at), stream, driver, budget);
        }
        let received = stream.receive(&mut self.reply.bytes[self.reply.got..]);
        self.reply.got += received;
        budget.spend(received);
        if self.reply.got == wire::REPLY_BYTES {
            let reply = core::mem::take(&mut self.reply).bytes;
            self.handle(reply, driver)?;
        }
        Ok(received > 0)
    }

    fn receive_data<S, D>(
        &mut self,
        (tag, at): (u16, u32),
        stream: &mut S,
        driver: &mut D,
        budget: &mut Budget,
    ) -> Result<bool, TurnError<D::Fault>>
    where
        S: Stream + ?Sized,
        D: Driver + ?Sized,
    {
        let slot = *self.slot(tag);
        let mut piece = [0; PIECE_BYTES];
        let most = PIECE_BYTES.min(slot.part.saturating_sub(at) as usize);
        let received = stream.receive(&mut piece[..most]);
        budget.spend(received);
        driver.write(tag, slot.done + at, &piece[..received]).map_err(TurnError::Driver)?;
        let at = at + received as u32;
        self.reading = (at < slot.part).then_some((tag, at));
        if self.reading.is_none() {
            self.answered(tag, driver)?;
        }
        Ok(received > 0)
    }

    /// Handles a reply that has arrived.
    fn handle<D>(&mut self, reply: [u8; wire::REPLY_BYTES], driver: &mut D) -> Result<(), TurnError<D::Fault>>
    where
        D: Driver + ?Sized,
    {
        let (magic, error, cookie) = (be32(&reply, 0), be32(&reply, 4), be64(&reply, 8));
        if magic != wire::SIMPLE_REPLY {
            return Err(Problem::ReplyMagic(magic).into());
        }
        let tag = cookie as u16;
        let its = self.slots.get(usize::from(tag)).filter(|slot| slot.stage == Stage::Sent && slot.cookie == cookie);
        let slot = *its.ok_or(Problem::Cookie(cookie))?;
        match error {
            0 if slot.command() == Command::Read => self.reading = Some((tag, 0)),
            0 => self.answered(tag, driver)?,
            wire::ESHUTDOWN => return Err(Problem::ShuttingDown.into()),
            _ if tag == AGAIN => return Err(Problem::NotWrittenAgain { error }.into()),
            _ if tag == OWN_FLUSH => return Err(Problem::NotFlushed { error }.into()),
            _ => self.complete(tag, Err(Failure::Server(error)), driver)?,
        }
        Ok(())
    }

    /// Notes that the server has executed what it was sent.
    fn answered<D>(&mut self, tag: u16, driver: &mut D) -> Result<(), TurnError<D::Fault>>
    where
        D: Driver + ?Sized,
    {
        self.note_answer();
        let (slot, next_flush) = (*self.slot(tag), self.flush);
        if let Some(journal) = &mut self.journal {
            match (slot.kept, tag) {
                (Some(number), AGAIN) => journal.written_again(number, next_flush),
                (Some(number), _) => journal.set(number, Kept::Answered(next_flush)),
                (None, _) if slot.is_flush() => journal.flushed(slot.flush),
                (None, _) => {}
            }
        }
        let slot = self.slot(tag);
        slot.kept = None;
        if tag == AGAIN || tag == OWN_FLUSH {
            self.free(tag);
            return Ok(());
        }
        slot.done += slot.part;
        slot.stage = Stage::Queued;
        let is_done = slot.is_flushing || slot.done >= slot.request.bytes;
        if is_done && !slot.is_flushing && self.is_flushed_after(tag) {
            self.slot(tag).is_flushing = true;
            return Ok(());
        }
        if is_done { self.complete(tag, Ok(()), driver) } else { Ok(()) }
    }

    /// Returns whether a change is stable only after a flush of its own.
    fn is_flushed_after(&mut self, tag: u16) -> bool {
        let has_fua = self.export.is_some_and(|export| export.has_fua());
        self.is_write_through() && !has_fua && self.slot(tag).request.command.is_change()
    }
}

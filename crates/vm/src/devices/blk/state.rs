// SPDX-License-Identifier: MIT OR Apache-2.0
//! The client in the words of the hand-over.

use handover::Full;
use handover::state::{self, blk_flag};
use nbd::{Client, Config, JOURNAL_BYTES, JOURNAL_WRITES, REQUESTS, SavedClient, SavedRequest, SavedWrite, Unfit};
use zerocopy::{FromBytes, Immutable, KnownLayout};

use crate::devices::{StateError, piece};

/// Data of a change is padded to this.
const ALIGNMENT: usize = 8;
/// Requests of a driver, and two of the client's own.
const MOST_REQUESTS: usize = REQUESTS + 2;

/// The most bytes of a state.
pub(super) fn bytes(client: &Client) -> usize {
    let requests = MOST_REQUESTS * size_of::<state::BlkRequest>();
    let writes = JOURNAL_WRITES * (size_of::<state::BlkWrite>() + ALIGNMENT) + JOURNAL_BYTES;
    size_of::<state::Blk>() + requests + if client.config().is_write_back { writes } else { 0 }
}

/// Writes a state; returns the bytes used.
///
/// # Errors
/// [`Full`] if there is no room.
pub(super) fn save(client: &Client, into: &mut [u8]) -> Result<usize, Full> {
    let saved = client.save();
    let head = state::Blk {
        bytes: saved.bytes.into(),
        sequence: saved.sequence.into(),
        cookie: saved.cookie.into(),
        flush: saved.flush.into(),
        block: saved.block.into(),
        payload: saved.payload.into(),
        sent: saved.sent.into(),
        read: saved.read.into(),
        sending: saved.sending.into(),
        reading: saved.reading.into(),
        export_flags: saved.flags.into(),
        requests: (client.saved_requests().count() as u16).into(),
        writes: (client.saved_writes().count() as u16).into(),
        reply_bytes: saved.reply_bytes,
        flags: if saved.is_connected { blk_flag::CONNECTED } else { 0 },
        zero: 0.into(),
        reply: saved.reply,
    };
    let mut used = piece::save(&head, into)?;
    for request in client.saved_requests() {
        used += piece::save(&self::request(&request), into.get_mut(used..).ok_or(Full)?)?;
    }
    for (write, data) in client.saved_writes() {
        let SavedWrite { offset, bytes, command } = write;
        let head = state::BlkWrite { offset: offset.into(), bytes: bytes.into(), command: u32::from(command).into() };
        used += piece::save(&head, into.get_mut(used..).ok_or(Full)?)?;
        for part in data {
            into.get_mut(used..used + part.len()).ok_or(Full)?.copy_from_slice(part);
            used += part.len();
        }
        let end = used.next_multiple_of(ALIGNMENT);
        into.get_mut(used..end).ok_or(Full)?.fill(0);
        used = end;
    }
    Ok(used)
}

fn request(from: &SavedRequest) -> state::BlkRequest {
    state::BlkRequest {
        offset: from.offset.into(),
        sequence: from.sequence.into(),
        cookie: from.cookie.into(),
        waited_ns: from.waited_ns.into(),
        bytes: from.bytes.into(),
        done: from.done.into(),
        part: from.part.into(),
        tag: from.tag.into(),
        command: from.command,
        stage: from.stage,
        is_flushing: u32::from(from.is_flushing).into(),
        zero: 0.into(),
    }
}

fn refused(Unfit(field, reason): Unfit) -> StateError {
    StateError { field, reason }
}

const CUT: StateError = StateError { field: "blk", reason: "its state is cut off" };

/// A client that goes on from a saved state.
///
/// # Errors
/// [`StateError`] if none can be in it.
pub(super) fn restored(config: &Config, from: &[u8]) -> Result<Client, StateError> {
    let mut rest = from;
    let head: state::Blk = take(&mut rest)?;
    if head.flags & !blk_flag::ALL != 0 {
        return Err(StateError { field: "blk.flags", reason: "a flag is unknown" });
    }
    let mut client = Client::new(config.clone());
    client.resume(&client_of(&head)).map_err(refused)?;
    for _ in 0..head.requests.get() {
        client.resume_request(&request_of(&take(&mut rest)?)).map_err(refused)?;
    }
    for _ in 0..head.writes.get() {
        let write: state::BlkWrite = take(&mut rest)?;
        let (offset, bytes) = (write.offset.get(), write.bytes.get());
        let command = u8::try_from(write.command.get()).unwrap_or(u8::MAX);
        let write = SavedWrite { offset, bytes, command };
        let padded = write.data_bytes().next_multiple_of(ALIGNMENT);
        let (mut data, behind) = rest.split_at_checked(padded).ok_or(CUT)?;
        let fill = |into: &mut [u8]| {
            let (part, left) = data.split_at(into.len());
            into.copy_from_slice(part);
            data = left;
        };
        client.resume_write(&write, fill).map_err(refused)?;
        rest = behind;
    }
    client.check_resumed().map_err(refused)?;
    if rest.is_empty() { Ok(client) } else { Err(StateError { field: "blk", reason: "its state is too long" }) }
}

fn take<T: FromBytes + KnownLayout + Immutable>(from: &mut &[u8]) -> Result<T, StateError> {
    let (value, behind) = T::read_from_prefix(from).map_err(|_| CUT)?;
    *from = behind;
    Ok(value)
}

fn client_of(head: &state::Blk) -> SavedClient {
    SavedClient {
        bytes: head.bytes.get(),
        block: head.block.get(),
        payload: head.payload.get(),
        flags: head.export_flags.get(),
        is_connected: head.flags & blk_flag::CONNECTED != 0,
        sending: head.sending.get(),
        sent: head.sent.get(),
        reading: head.reading.get(),
        read: head.read.get(),
        reply: head.reply,
        reply_bytes: head.reply_bytes,
        sequence: head.sequence.get(),
        cookie: head.cookie.get(),
        flush: head.flush.get(),
    }
}

fn request_of(from: &state::BlkRequest) -> SavedRequest {
    SavedRequest {
        tag: from.tag.get(),
        command: from.command,
        stage: from.stage,
        is_flushing: from.is_flushing.get() != 0,
        offset: from.offset.get(),
        bytes: from.bytes.get(),
        done: from.done.get(),
        part: from.part.get(),
        sequence: from.sequence.get(),
        cookie: from.cookie.get(),
        waited_ns: from.waited_ns.get(),
    }
}

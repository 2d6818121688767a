// SPDX-License-Identifier: MIT OR Apache-2.0
//! The driver's requests (section 5.2.6).

use ::virtio::{Chain, Fault};
use nbd::{Client, Command, Failure, Request};

use super::config::SECTOR_BYTES;
use super::queue::REQUESTS;
use crate::devices::virtio::Io;

/// Types of requests.
pub(super) const IN: u32 = 0;
pub(super) const OUT: u32 = 1;
pub(super) const FLUSH: u32 = 4;
pub(super) const GET_ID: u32 = 8;
pub(super) const DISCARD: u32 = 11;
pub(super) const WRITE_ZEROES: u32 = 13;

/// The header, and the only range of a request to discard or to zero.
pub(super) const HEADER_BYTES: u32 = 16;
const RANGE_BYTES: u32 = 16;
/// The storage of zeroes may be freed.
const UNMAP: u32 = 1 << 0;
/// Bytes of a serial number.
pub(super) const SERIAL_BYTES: usize = 20;

/// Statuses.
const OK: u8 = 0;
const IO_ERROR: u8 = 1;
const UNSUPPORTED: u8 = 2;

/// The status of a request that the client is done with.
pub(super) fn status(result: Result<(), Failure>) -> u8 {
    if result.is_ok() { OK } else { IO_ERROR }
}

/// Hands a request to the client, or answers it at once. Returns the bytes that it reads or writes.
///
/// # Errors
/// The driver's [`Fault`].
pub(super) fn begin(
    client: &mut Client,
    serial: &[u8; SERIAL_BYTES],
    chain: &Chain,
    now_ns: u64,
    io: &mut Io<'_>,
) -> Result<u32, Fault> {
    let (readable, room) = (chain.readable_bytes(), chain.writable_bytes().wrapping_sub(1));
    if readable < HEADER_BYTES || room == u32::MAX {
        return Err(Fault::Request("a disk request without its header, or without room for its status"));
    }
    let mut header = [0; HEADER_BYTES as usize];
    chain.read(io.memory, 0, &mut header)?;
    let [a, b, c, d, _, _, _, _, sector @ ..] = header;
    let (kind, sector) = (u32::from_le_bytes([a, b, c, d]), u64::from_le_bytes(sector));
    if room > 0 && !matches!(kind, IN | GET_ID) {
        return Err(Fault::Request("a disk request with room for data that none returns"));
    }
    let sent = readable - HEADER_BYTES;
    let wanted = match kind {
        IN => request(Command::Read, sector, room),
        OUT => request(Command::Write, sector, sent),
        FLUSH => Ok(Request { command: Command::Flush, offset: 0, bytes: 0 }),
        DISCARD | WRITE_ZEROES => range(kind, chain, io)?,
        GET_ID => {
            let most = SERIAL_BYTES.min(room as usize);
            chain.write(io.memory, 0, &serial[..most])?;
            return answer(chain, OK, most as u32, io).map(|()| 0);
        }
        _ => Err(UNSUPPORTED),
    };
    match wanted {
        Ok(request) => {
            let submitted = client.submit(chain.head(), request, now_ns);
            submitted.map_err(|_| Fault::Request("a chain is made available again while it is in flight"))?;
            Ok(if matches!(request.command, Command::Read | Command::Write) { request.bytes } else { 0 })
        }
        Err(status) => answer(chain, status, 0, io).map(|()| 0),
    }
}

fn request(command: Command, sector: u64, bytes: u32) -> Result<Request, u8> {
    Ok(Request { command, offset: sector.checked_mul(SECTOR_BYTES).ok_or(IO_ERROR)?, bytes })
}

/// The request to discard or to zero a range.
fn range(kind: u32, chain: &Chain, io: &Io<'_>) -> Result<Result<Request, u8>, Fault> {
    if chain.readable_bytes() - HEADER_BYTES != RANGE_BYTES {
        return Ok(Err(IO_ERROR));
    }
    let mut range = [0; RANGE_BYTES as usize];
    chain.read(io.memory, HEADER_BYTES, &mut range)?;
    let [a, b, c, d, e, f, g, h, i, j, k, l, flags @ ..] = range;
    let (sector, sectors) = (u64::from_le_bytes([a, b, c, d, e, f, g, h]), u32::from_le_bytes([i, j, k, l]));
    let flags = u32::from_le_bytes(flags);
    let command = match (kind, flags) {
        (DISCARD, 0) => Command::Trim,
        (WRITE_ZEROES, 0 | UNMAP) => Command::WriteZeroes { may_trim: flags == UNMAP },
        _ => return Ok(Err(UNSUPPORTED)),
    };
    let Some(bytes) = sectors.checked_mul(SECTOR_BYTES as u32) else { return Ok(Err(IO_ERROR)) };
    Ok(request(command, sector, bytes))
}

/// Writes the status, which is the last byte, and completes a chain with so many bytes of data before it.
pub(super) fn answer(chain: &Chain, status: u8, data: u32, io: &mut Io<'_>) -> Result<(), Fault> {
    let room = chain.writable_bytes().saturating_sub(1);
    chain.write(io.memory, room, &[status])?;
    // Only what is written in one piece counts (2.7.8.2).
    let written = if data == room { room + 1 } else { data };
    io.complete(REQUESTS, chain.head(), written)
}

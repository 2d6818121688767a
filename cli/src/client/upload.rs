// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sending a file to a host: several pieces at once, so that the line never waits for an answer. When some are lost,
//! the tool goes on from the place that the host names, with smaller pieces: less is lost with the next one. Pieces are
//! packed where the line to the host is a serial one at its end: everywhere but in a guest of that host, where packing
//! takes a hundred times as long as the bytes do.

use std::collections::VecDeque;
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use packing::{Effort, Packer};
use seal::{Portable, Sha256};
use wire::{MAX_FRAME_BYTES, MAX_PACKED_BYTES, MAX_UPLOAD_BYTES, ReplyBody, RequestBody, UploadKind};

use super::{Client, unexpected};

/// The maximum number of unanswered pieces. A broker's buffer for a client, and the host's for answers, is several
/// times that.
const WINDOW: usize = 8;
/// The number of attempts in a row without progress after which the upload fails.
const MAX_TRIES: u32 = 16;
/// The smallest piece: on a line that damages those, nothing else gets through either.
const MIN_PIECE_BYTES: usize = 250;

impl Client {
    /// Files are sent as they are from here on.
    pub fn pack_nothing(&mut self) {
        self.packs = false;
    }

    /// Returns whether the line to the host is a serial one at its end.
    pub fn is_over_serial_line(&self) -> bool {
        self.packs
    }

    /// Sends a file; `progress` is called with the number of bytes that have arrived.
    pub fn upload(&mut self, kind: UploadKind, file: &[u8], mut progress: impl FnMut(u64)) -> Result<()> {
        let mut hash = Sha256::new(Portable);
        hash.update(file);
        let begin = RequestBody::UploadBegin { kind, bytes: file.len() as u64, sha256: hash.finish() };
        let effort = if kind == UploadKind::Memory { Effort::Little } else { Effort::Most };
        let (mut tries, mut piece_bytes) = (0, MAX_UPLOAD_BYTES);
        let mut there = self.received(begin.clone())?;
        while there < file.len() as u64 {
            progress(there);
            tries =
                if self.send_from(there, (file, effort), piece_bytes, &mut progress)? > there { 0 } else { tries + 1 };
            ensure!(tries < MAX_TRIES, "the host takes no more of the file after {there} bytes; see its log");
            piece_bytes = (piece_bytes / 2).max(MIN_PIECE_BYTES);
            there = self.received(begin.clone())?;
        }
        progress(there);
        Ok(())
    }

    fn received(&mut self, body: RequestBody) -> Result<u64> {
        match self.request(body)? {
            ReplyBody::Received { next_offset } => Ok(next_offset),
            other => bail!(unexpected(&other)),
        }
    }

    /// Sends pieces from a place on until all have arrived or one is lost; returns how many bytes have arrived.
    fn send_from(
        &mut self,
        from: u64,
        (file, effort): (&[u8], Effort),
        piece: usize,
        progress: &mut impl FnMut(u64),
    ) -> Result<u64> {
        let (mut sent, mut there) = (from, from);
        let limit = piece.min(MAX_PACKED_BYTES);
        let mut packer = self.packs.then(|| Packer::new(file, from as usize, limit, effort));
        // The unanswered pieces, by number and end.
        let mut pending: VecDeque<(u32, u64)> = VecDeque::new();
        let timeout = self.patience(self.patience.piece, WINDOW * MAX_FRAME_BYTES);
        while there < file.len() as u64 {
            while pending.len() < WINDOW && sent < file.len() as u64 {
                let (body, end) = next_piece(file, sent, piece, packer.as_mut());
                sent = end;
                pending.push_back((self.send(body)?, sent));
            }
            let Some(response) = self.response(Instant::now() + timeout)? else { break };
            let Some(at) = pending.iter().position(|(id, _)| *id == response.id) else {
                // The host could not read a piece, or this answers a request before.
                if response.id == 0 { break } else { continue }
            };
            // Answers come in the order of the pieces: those to pieces before this one are lost.
            let end = pending.drain(..=at).next_back().map_or(sent, |(_, end)| end);
            // The host does not expect the file any more: it is announced again.
            if response.result.as_ref().is_err_and(|refusal| self.may_begin_again(refusal)) {
                break;
            }
            let ReplyBody::Received { next_offset } = response.result? else {
                bail!("the host answered something else to a piece of a file; use tool and host of one release")
            };
            there = there.max(next_offset);
            progress(there);
            if next_offset < end {
                break;
            }
        }
        Ok(there)
    }
}

/// Returns the piece at `offset`, of at most so many bytes on the line, and its end: packed if there is a packer.
fn next_piece(file: &[u8], offset: u64, most: usize, packer: Option<&mut Packer<'_>>) -> (RequestBody, u64) {
    if let Some(packer) = packer {
        let packing::Piece { bytes, begins, packed } = packer.piece();
        let end = offset + bytes as u64;
        return (RequestBody::UploadPacked { offset, bytes: bytes as u32, packed, begins }, end);
    }
    let rest = &file[offset as usize..];
    let bytes = rest[..rest.len().min(most)].to_vec();
    let end = offset + bytes.len() as u64;
    (RequestBody::UploadData { offset, bytes }, end)
}

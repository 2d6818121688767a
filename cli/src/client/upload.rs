// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sending a file to a host: several pieces at once, so that the line never waits for an answer. When some are lost,
//! the tool goes on from the place that the host names.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use seal::{Portable, Sha256};
use wire::{MAX_UPLOAD_BYTES, ReplyBody, RequestBody, UploadKind};

use super::{Client, unexpected};

/// The maximum number of unanswered pieces. A broker's buffer for a client, and the host's for answers, is several
/// times that.
const WINDOW: usize = 8;
/// The time after which an unanswered piece counts as lost.
const SILENCE: Duration = Duration::from_secs(5);
/// The number of attempts in a row without progress after which the upload fails.
const MAX_TRIES: u32 = 4;

impl Client {
    /// Sends a file; `progress` is called with the number of bytes that have arrived.
    pub fn upload(&mut self, kind: UploadKind, file: &[u8], mut progress: impl FnMut(u64)) -> Result<()> {
        let mut hash = Sha256::new(Portable);
        hash.update(file);
        let begin = RequestBody::UploadBegin { kind, bytes: file.len() as u64, sha256: hash.finish() };
        let mut tries = 0;
        let mut there = self.received(begin.clone())?;
        while there < file.len() as u64 {
            progress(there);
            tries = if self.send_from(there, file, &mut progress)? > there { 0 } else { tries + 1 };
            ensure!(tries < MAX_TRIES, "the host takes no more of the file after {there} bytes; see its log");
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

    /// Sends pieces from a place on until all have arrived or some are lost; returns how many bytes have arrived.
    fn send_from(&mut self, from: u64, file: &[u8], progress: &mut impl FnMut(u64)) -> Result<u64> {
        let (mut sent, mut there) = (from, from);
        let (first, mut answered) = (self.last_id + 1, 0);
        while there < file.len() as u64 {
            while ((self.last_id + 1 - first) as usize) < answered + WINDOW && sent < file.len() as u64 {
                let rest = &file[sent as usize..];
                let bytes = rest[..rest.len().min(MAX_UPLOAD_BYTES)].to_vec();
                sent += bytes.len() as u64;
                self.send(RequestBody::UploadData { offset: sent - bytes.len() as u64, bytes })?;
            }
            let Some(response) = self.next_response(SILENCE)? else { break };
            if response.id < first {
                continue;
            }
            answered += 1;
            match response.result? {
                ReplyBody::Received { next_offset } => there = there.max(next_offset),
                other => bail!(unexpected(&other)),
            }
            progress(there);
            if there < sent && self.last_id + 1 - first == answered as u32 && sent == file.len() as u64 {
                break;
            }
        }
        Ok(there)
    }

    /// Returns the next answer, or `None` if none comes in time.
    fn next_response(&mut self, timeout: Duration) -> Result<Option<wire::Response>> {
        let deadline = Instant::now() + timeout;
        while self.responses.is_empty() {
            if !self.receive(deadline)? {
                return Ok(None);
            }
        }
        Ok(self.responses.pop_front())
    }
}

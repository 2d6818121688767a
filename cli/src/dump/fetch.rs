// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's memory over the control channel.
//!
//! The line is fast enough only if it never waits for the next request. So the memory is cut into shares, and each
//! share has a request under way until it is done.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use wire::{MAX_FRAME_BYTES, ReplyBody, RequestBody, Response};

use super::Interrupted;
use super::image::Image;
use crate::client::{Client, Closed};

/// The maximum number of requests under way. Their answers fit the host's queue for a slow line while it is unused.
const SHARES: u64 = 12;
/// Bytes of the answers under way.
pub(super) const ASKED_BYTES: usize = SHARES as usize * MAX_FRAME_BYTES;
/// The time after which unanswered requests are repeated: the host drops answers when its queue is full.
const REPEAT_AFTER: Duration = Duration::from_secs(5);
/// The interval at which an interrupt by the operator is checked.
const TICK: Duration = Duration::from_millis(100);
/// The number of repeats after which the host counts as unresponsive.
const ATTEMPTS: u32 = 6;

/// The rest of one share.
#[derive(Clone, Copy, Debug)]
struct Share {
    from: u64,
    to: u64,
}

/// The shares under way.
#[derive(Debug, Default)]
struct Asked {
    shares: BTreeMap<u32, Share>,
    /// The repeats since the last answer.
    repeats: u32,
    /// The ticks since the last answer or repeat.
    ticks: u32,
}

/// Fetches all memory that is not zero into `image`; returns its bytes.
pub fn all(
    client: &mut Client,
    name: &str,
    image: &Image,
    mut progress: impl FnMut(u64, u64),
    is_interrupted: &dyn Fn() -> bool,
) -> Result<u64> {
    let total: u64 = image.pieces.iter().map(|piece| piece.bytes).sum();
    let mut waiting: Vec<Share> = image.pieces.iter().flat_map(|piece| shares(piece.gpa, piece.bytes)).collect();
    let (mut done, mut fetched) = (0, 0);
    let mut asked = Asked::default();
    loop {
        while asked.shares.len() < SHARES as usize
            && let Some(share) = waiting.pop()
        {
            ask(client, name, share, &mut asked)?;
        }
        if asked.shares.is_empty() {
            return Ok(fetched);
        }
        if is_interrupted() {
            bail!(Interrupted);
        }
        let Some(response) = next_answer(client, name, &mut asked)? else { continue };
        let Some(share) = asked.shares.remove(&response.id) else { continue };
        let ReplyBody::Memory { gpa, bytes, times, next_gpa } = response.result? else {
            bail!("the host answered something else; use tool and host of one release");
        };
        if next_gpa <= share.from || next_gpa > share.to {
            bail!("the host would go on at {next_gpa:#x} instead of between {:#x} and {:#x}", share.from, share.to);
        }
        let space = next_gpa.checked_sub(gpa).filter(|_| gpa >= share.from).unwrap_or(0);
        if bytes.len() as u64 * u64::from(times) > space {
            bail!("the host sent memory outside of the requested range {:#x} to {next_gpa:#x}", share.from);
        }
        if !bytes.is_empty() {
            image.write(gpa, &bytes.repeat(times as usize)).context("the file cannot be written")?;
        }
        (done, fetched) = (done + next_gpa - share.from, fetched + bytes.len() as u64);
        progress(done, total);
        if next_gpa < share.to {
            ask(client, name, Share { from: next_gpa, ..share }, &mut asked)?;
        }
    }
}

/// Returns the next answer; `None` where none has come so far. After a timeout, all requests are repeated.
fn next_answer(client: &mut Client, name: &str, asked: &mut Asked) -> Result<Option<Response>> {
    match client.answer(TICK) {
        Ok(response) => {
            (asked.repeats, asked.ticks) = (0, 0);
            Ok(Some(response))
        }
        Err(error) if error.is::<Closed>() => Err(error),
        Err(_) if TICK * (asked.ticks + 1) < client.patience(REPEAT_AFTER, ASKED_BYTES) => {
            asked.ticks += 1;
            Ok(None)
        }
        Err(error) if asked.repeats == ATTEMPTS => Err(error),
        Err(_) => {
            (asked.repeats, asked.ticks) = (asked.repeats + 1, 0);
            for share in std::mem::take(&mut asked.shares).into_values() {
                ask(client, name, share, asked)?;
            }
            Ok(None)
        }
    }
}

fn shares(gpa: u64, bytes: u64) -> impl Iterator<Item = Share> {
    let part = (bytes / SHARES).next_multiple_of(4096).max(4096);
    let starts = (0..SHARES).map(move |index| (index * part).min(bytes));
    let ends = (1..=SHARES).map(move |index| if index == SHARES { bytes } else { (index * part).min(bytes) });
    starts
        .zip(ends)
        .filter(|(start, end)| start < end)
        .map(move |(start, end)| Share { from: gpa + start, to: gpa + end })
}

fn ask(client: &mut Client, name: &str, share: Share, asked: &mut Asked) -> Result<()> {
    let body = RequestBody::VmMemory { name: name.to_owned(), from_gpa: share.from, to_gpa: share.to };
    asked.shares.insert(client.send(body)?, share);
    Ok(())
}

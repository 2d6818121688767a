// SPDX-License-Identifier: MIT OR Apache-2.0
//! A capture of frames between guests, page by page.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use wire::{CapturePage, Refusal, ReplyBody, RequestBody};

use super::{Client, some_number, unexpected};

/// The interval between two requests for frames, once there are none left.
const INTERVAL: Duration = Duration::from_millis(100);

/// The most bytes of a frame that a host keeps.
pub const MAX_SNAP_BYTES: u32 = switch::MAX_SNAP_BYTES as u32;

/// The frames to capture.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The network.
    pub network: &'a str,
    /// The guest that sends or receives them; `None`: any.
    pub guest: Option<&'a str>,
    /// The most bytes of a frame; the host may keep fewer.
    pub snap_bytes: u32,
}

impl Client {
    /// Captures frames for this time. `take` sees each page, also those without frames. Returns the host's reason if it
    /// ended the capture early.
    pub fn capture(
        &mut self,
        wanted: Wanted<'_>,
        time: Duration,
        mut take: impl FnMut(CapturePage) -> Result<()>,
    ) -> Result<Option<String>> {
        let (by, end) = (some_number(), Instant::now().checked_add(time));
        let Wanted { network, guest, snap_bytes } = wanted;
        let (network, guest) = (network.to_owned(), guest.map(str::to_owned));
        take(self.captured(RequestBody::CaptureBegin { by, network, guest, snap_bytes })?)?;
        match self.gather_frames(by, end, &mut take) {
            Ok(()) => Ok(None),
            // The frames so far have been taken.
            Err(error) => Ok(Some(error.downcast::<Refusal>()?.to_string())),
        }
    }

    fn gather_frames(
        &mut self,
        by: u32,
        end: Option<Instant>,
        take: &mut impl FnMut(CapturePage) -> Result<()>,
    ) -> Result<()> {
        loop {
            let left = end.map_or(INTERVAL, |end| end.saturating_duration_since(Instant::now()));
            let is_end = left.is_zero();
            let page = self.captured(RequestBody::CaptureRead { by, is_end })?;
            let is_empty = page.frames.is_empty();
            take(page)?;
            match (is_end, is_empty) {
                (true, true) => return Ok(()),
                (false, true) => thread::sleep(left.min(INTERVAL)),
                _ => {}
            }
        }
    }

    fn captured(&mut self, question: RequestBody) -> Result<CapturePage> {
        match self.request(question)? {
            ReplyBody::Capture(page) => Ok(page),
            other => bail!(unexpected(&other)),
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures of frames between guests: one at a time, for the first client that asks.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use profile::Session;
use switch::{Capture, Captured};
use wire::{
    CAPTURED_HEAD_BYTES, CapturePage, CapturedFrame, MAX_CAPTURED_BYTES, MAX_NAME_BYTES, Refusal, RefusalCode,
    ReplyBody,
};

use super::named;
use crate::arch::{cpu, timer};
use crate::guests::networks::{self, Tap};
use crate::guests::slots::GUESTS;

/// The time between two checks whether the client still asks.
const POLL_US: u64 = 1_000_000;

/// The capture that is taken, if one is.
#[derive(Default)]
pub struct Captures(Option<Running>);

struct Running {
    session: Session,
    tap: Arc<Tap>,
    next_poll: u64,
}

impl Captures {
    /// Begins one for the client `by`.
    pub fn begin(
        &mut self,
        by: u32,
        network: &str,
        guest: Option<&str>,
        snap_bytes: u32,
    ) -> Result<ReplyBody, Refusal> {
        if self.0.is_some() {
            return refuse(
                RefusalCode::WrongState,
                "frames are being captured".into(),
                "ask again when that is over; a capture without questions ends after 5 s",
            );
        }
        let Some(tap) = networks::tap(network) else {
            let network = wire::bounded(network, MAX_NAME_BYTES);
            return refuse(
                RefusalCode::Invalid,
                format!("there is no network {network:?}"),
                "`baton net list` shows those with guests",
            );
        };
        let guest = guest.map(named::find).transpose()?.map(|guest| guest.number);
        let Some(capture) = Capture::new(guest, snap_bytes as usize) else {
            return refuse(RefusalCode::Exhausted, "there is no memory for frames".into(), "stop a guest");
        };
        tap.begin(capture);
        let session = Session::begin(by, timer::uptime_ns());
        Ok(self.0.insert(Running { session, tap, next_poll: next_poll() }).page())
    }

    /// Reports what there is to the client that takes it.
    pub fn read(&mut self, by: u32, is_end: bool) -> Result<ReplyBody, Refusal> {
        let mine = self.0.as_mut().filter(|running| running.session.is_of(by));
        let Some(running) = mine else {
            return refuse(
                RefusalCode::WrongState,
                "the capture is over".into(),
                "an update, a restart or 5 s without a question end it",
            );
        };
        running.session.hear(by, timer::uptime_ns());
        if is_end {
            running.tap.pause();
        }
        let page = running.page();
        if is_end && matches!(&page, ReplyBody::Capture(page) if page.frames.is_empty()) {
            self.stop();
        }
        Ok(page)
    }

    /// Ends the capture, no matter which client takes it: the image is about to leave.
    pub fn stop(&mut self) {
        if let Some(running) = self.0.take() {
            running.tap.end();
        }
    }

    /// Ends a capture that no client asks for any more.
    pub fn poll(&mut self) {
        let Some(running) = self.0.as_mut().filter(|running| running.next_poll <= cpu::tsc()) else { return };
        running.next_poll = next_poll();
        if running.session.is_abandoned(timer::uptime_ns()) {
            self.stop();
        }
    }

    /// Returns when to check again, while there is one.
    pub fn alarm(&self) -> Option<u64> {
        self.0.as_ref().map(|running| running.next_poll)
    }
}

impl Running {
    /// The frames that fit a page.
    fn page(&self) -> ReplyBody {
        let (mut frames, mut room) = (Vec::new(), MAX_CAPTURED_BYTES);
        while let Some(most) = room.checked_sub(CAPTURED_HEAD_BYTES + MAX_NAME_BYTES) {
            let Some(captured) = self.tap.take(most) else { break };
            room -= captured.content.len() + CAPTURED_HEAD_BYTES + MAX_NAME_BYTES;
            frames.push(described(captured));
        }
        let (seen, lost) = self.tap.counts();
        ReplyBody::Capture(CapturePage { seen, lost, frames })
    }
}

fn described(Captured { seen, content }: Captured) -> CapturedFrame {
    let sender = GUESTS.at(seen.sender).map_or_else(String::new, |guest| guest.config.name.clone());
    CapturedFrame { time_ns: seen.time_ns, sender, bytes: seen.bytes, content }
}

fn next_poll() -> u64 {
    cpu::tsc() + timer::us_to_ticks(POLL_US)
}

fn refuse<T>(code: RefusalCode, reason: String, hint: &str) -> Result<T, Refusal> {
    Err(Refusal { code, reason, hint: hint.to_string() })
}

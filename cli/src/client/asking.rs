// SPDX-License-Identifier: MIT OR Apache-2.0
//! A request and its answer over a line that may lose either.
//!
//! A request that changes nothing, or that is idempotent, is repeated under its number until an answer comes: the first
//! answer is used, later ones are dropped. Any other request is sent once. When its answer does not come, the error
//! states that the order may have been carried out.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use wire::{MAX_FRAME_BYTES, Refusal, RefusalCode, ReplyBody, RequestBody, Response};

use super::{Client, Closed, Unclear, unexpected};

/// Longest time for the host to answer, beside the line's own.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// The time after the first refusal of a host that does not know the request for a session, or for single consoles: the
/// refusal may have been about noise.
const OLD_IMAGE: Duration = Duration::from_secs(3);
/// The number of an answer to bytes that the host could not read.
const NO_REQUEST: u32 = 0;

/// Timeouts of one answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// The time without an answer after which a request is repeated. It doubles each time.
    pub repeat: Duration,
    /// After the host has reported that it could not read something: the time for the answer, in case that was not this
    /// request.
    pub unread: Duration,
    /// The time without an answer after which a piece of a file counts as lost.
    pub piece: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let repeat = Duration::from_secs(3);
        Self { repeat, unread: Duration::from_millis(500), piece: Duration::from_secs(5) }
    }
}

/// One request under way.
struct Asking {
    id: u32,
    body: RequestBody,
    is_repeatable: bool,
    deadline: Instant,
    /// The time at which it is repeated.
    repeat_at: Instant,
    interval: Duration,
    /// The host's last report that it could not read something.
    unread: Option<Refusal>,
    /// Another session was begun for it.
    is_again: bool,
}

impl Client {
    /// Sends a request and waits for the answer. A refusal is an error ([`wire::Refusal`] can be downcast to).
    pub fn request(&mut self, body: RequestBody) -> Result<ReplyBody> {
        self.request_within(ANSWER_TIMEOUT, body)
    }

    /// Sends a request and waits at most `timeout` for the answer, and as long as the line takes for both.
    pub fn request_within(&mut self, timeout: Duration, body: RequestBody) -> Result<ReplyBody> {
        let id = self.next_id();
        let is_repeatable = is_repeatable(&body);
        let bytes = self.send_as(id, body.clone())? + MAX_FRAME_BYTES;
        let now = Instant::now();
        let interval = self.patience(self.patience.repeat, bytes);
        let deadline = now + self.patience(timeout, bytes);
        let mut asking = Asking {
            id,
            body,
            is_repeatable,
            deadline,
            repeat_at: now + interval,
            interval,
            unread: None,
            is_again: false,
        };
        self.wait_for(&mut asking, timeout)
    }

    /// Sends an order and waits until the host has accepted it.
    pub fn order(&mut self, body: RequestBody) -> Result<()> {
        match self.request(body)? {
            ReplyBody::Done => Ok(()),
            other => bail!(unexpected(&other)),
        }
    }

    fn wait_for(&mut self, asking: &mut Asking, timeout: Duration) -> Result<ReplyBody> {
        loop {
            let until = if asking.is_repeatable { asking.deadline.min(asking.repeat_at) } else { asking.deadline };
            match self.response(until) {
                Ok(Some(Response { id, result: Err(refusal) })) if id == asking.id => {
                    self.ask_again(asking, refusal)?
                }
                Ok(Some(Response { id, result: Ok(reply) })) if id == asking.id => return Ok(reply),
                Ok(Some(Response { id: NO_REQUEST, result: Err(refusal) })) => self.note_unread(asking, refusal),
                // It answers a request before.
                Ok(Some(_)) => {}
                Ok(None) if Instant::now() >= asking.deadline => return Err(self.failure(asking, timeout)),
                Ok(None) => self.repeat(asking)?,
                Err(error) if error.is::<Closed>() => {
                    // A broker reports why it drops a client.
                    return Err(asking.unread.take().map_or(error, anyhow::Error::from));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Repeats a refused request in another session, if it was refused for want of one.
    fn ask_again(&mut self, asking: &mut Asking, refusal: Refusal) -> Result<()> {
        let may_begin = self.may_begin_again(&refusal) && !std::mem::replace(&mut asking.is_again, true);
        if may_begin {
            self.begin_session()?;
        }
        if !may_begin || !asking.is_repeatable {
            return Err(denied(refusal).into());
        }
        self.send_as(asking.id, asking.body.clone()).map(drop)
    }

    /// The host could not read something: this request, or noise in front of it.
    fn note_unread(&self, asking: &mut Asking, refusal: Refusal) {
        let soon = Instant::now() + self.patience(self.patience.unread, MAX_FRAME_BYTES);
        match asking.is_repeatable {
            true => asking.repeat_at = asking.repeat_at.min(soon),
            false => asking.deadline = asking.deadline.min(soon),
        }
        let is_newer = matches!(asking.body, RequestBody::SessionBegin { .. } | RequestBody::SubscribeConsoles { .. });
        if is_newer && asking.unread.is_none() {
            asking.deadline = asking.deadline.min(Instant::now() + self.patience(OLD_IMAGE, MAX_FRAME_BYTES));
        }
        asking.unread = Some(refusal);
    }

    fn repeat(&mut self, asking: &mut Asking) -> Result<()> {
        if Instant::now() >= asking.repeat_at {
            self.send_as(asking.id, asking.body.clone())?;
            asking.interval *= 2;
            asking.repeat_at = Instant::now() + asking.interval;
        }
        Ok(())
    }

    fn failure(&self, asking: &mut Asking, timeout: Duration) -> anyhow::Error {
        match (asking.unread.take(), asking.is_repeatable) {
            (Some(refusal), true) => refusal.into(),
            (Some(refusal), false) => {
                let reason = format!("the host could not read a request ({})", refusal.reason);
                Unclear { reason, unread: Some(refusal) }.into()
            }
            (None, true) => self.no_answer(timeout),
            (None, false) => Unclear { reason: self.no_answer(timeout).to_string(), unread: None }.into(),
        }
    }
}

/// Returns the refusal as it is reported: a host that wants a session uses a code that tools of release 0.1.0 know,
/// too.
fn denied(refusal: Refusal) -> Refusal {
    let code = if refusal.code == RefusalCode::Protocol { RefusalCode::Denied } else { refusal.code };
    Refusal { code, ..refusal }
}

/// Returns whether a request may be carried out twice: it changes nothing, or the second time comes to the same.
fn is_repeatable(body: &RequestBody) -> bool {
    matches!(
        body,
        RequestBody::Info
            | RequestBody::VmList { .. }
            | RequestBody::VmLayout { .. }
            | RequestBody::VmRegisters { .. }
            | RequestBody::VmMemory { .. }
            | RequestBody::VmSaved { .. }
            | RequestBody::VmHold { .. }
            | RequestBody::VmPerf { .. }
            | RequestBody::Log { .. }
            | RequestBody::Events { .. }
            | RequestBody::Subscribe(_)
            | RequestBody::SubscribeConsoles { .. }
            | RequestBody::CpuList { .. }
            | RequestBody::CpuPerf { .. }
            | RequestBody::Epitaph { .. }
            | RequestBody::Timeline { .. }
            | RequestBody::PciList { .. }
            | RequestBody::NetList { .. }
            | RequestBody::DiskList { .. }
            | RequestBody::Config { .. }
            | RequestBody::FileList { .. }
            | RequestBody::VmSet { .. }
            | RequestBody::Iommus
            | RequestBody::Vulnerabilities
            | RequestBody::UploadBegin { .. }
            | RequestBody::UploadData { .. }
            | RequestBody::UploadPacked { .. }
            | RequestBody::UploadDrop
            | RequestBody::PermitDowngrade
            | RequestBody::Confirm
            | RequestBody::VmShutdown { .. }
            | RequestBody::PowerOff
            | RequestBody::SessionBegin { .. }
            | RequestBody::ControlKeys
            | RequestBody::RevokeControlKey { .. }
    )
}

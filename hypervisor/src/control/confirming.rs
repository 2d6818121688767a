// SPDX-License-Identifier: MIT OR Apache-2.0
//! An update that a client has to confirm: when the host returns to the image before is decided in
//! [`::update::confirm`].

use alloc::string::ToString;

use ::update::confirm::{Confirmation, TooLate};
use handover::layout::MAX_DEADLINE_SECONDS;
use wire::{EventKind, MAX_CONFIRM_SECONDS, Refusal, RefusalCode, ReplyBody, RequestBody, UpdateBy};

use super::Control;
use super::images::{Requester, Wanted};
use crate::arch::fault;
use crate::arch::tsc::Tsc;
use crate::guests::events::record;
use crate::kernel::inherited;

const _: () = assert!(MAX_CONFIRM_SECONDS == MAX_DEADLINE_SECONDS);

/// Checks a deadline that a client has chosen.
pub fn deadline(seconds: u32) -> Result<Option<u32>, Refusal> {
    if (1..=MAX_CONFIRM_SECONDS).contains(&seconds) {
        return Ok(Some(seconds));
    }
    Err(refusal(RefusalCode::Invalid, "the time for the confirmation is out of range", "give 1 to 86400 seconds"))
}

impl Control {
    /// This image has taken over: a client may have to confirm that.
    pub(super) fn await_confirmation(&mut self) {
        let seconds = inherited::known().and_then(|known| known.confirm_within_s);
        self.confirmation = Confirmation::begin(seconds, &Tsc);
        if let Some(seconds) = seconds {
            log::info!("update: the host returns to the image before in {seconds} s unless a client confirms");
        }
    }

    /// A client confirms that this image is to stay.
    pub(super) fn confirm(&mut self) -> Result<ReplyBody, Refusal> {
        let reason = match self.confirmation.confirm() {
            Ok(is_news) => {
                if is_news {
                    inherited::release_previous_bundle();
                    record(EventKind::UpdateConfirmed { generation: inherited::generation() });
                }
                return Ok(ReplyBody::Done);
            }
            Err(TooLate::NotWanted) => "no update waits to be confirmed",
            Err(TooLate::Returning) => "the deadline has passed: the host returns to the image before",
            Err(TooLate::Stayed) => "the deadline has passed, and the host could not return: it stays",
        };
        Err(refusal(RefusalCode::WrongState, reason, "`baton events` shows what became of the last update"))
    }

    /// While a client is still to confirm, no order may lose the way back.
    pub(super) fn keep_way_back(&self, body: &RequestBody) -> Result<(), Refusal> {
        let is_lost = match body {
            RequestBody::Update { by, is_dry_run } => *is_dry_run || *by != UpdateBy::Previous,
            RequestBody::UpdateUnlessConfirmed { .. } | RequestBody::Restart | RequestBody::RestartUploaded => true,
            _ => false,
        };
        if is_lost && self.confirmation.is_open() {
            let hint = "`baton confirm` it, or go back: `baton update --previous`";
            return Err(refusal(RefusalCode::WrongState, "the last update is not confirmed", hint));
        }
        Ok(())
    }

    /// Returns to the image before, if no client has confirmed in time.
    pub(super) fn return_if_due(&mut self) {
        let is_busy = !self.updates.is_idle() || self.images.is_checking() || self.is_departing();
        let was_waiting = matches!(self.confirmation, Confirmation::Awaiting { .. });
        let is_due = self.confirmation.turn(&Tsc, is_busy);
        if was_waiting && !matches!(self.confirmation, Confirmation::Awaiting { .. }) {
            record(EventKind::UpdateReturns { generation: inherited::generation() });
        }
        if is_due {
            let wanted = Wanted::Update { is_dry_run: false, confirm_within_s: None };
            if let Err(refusal) = self.begin_order(None, UpdateBy::Previous, wanted) {
                self.note_refused_return(&refusal);
            }
        }
    }

    /// An order is over: its requester is answered. Where the host itself wanted to return, it may try again.
    pub(super) fn conclude(&mut self, requester: Requester, result: Result<ReplyBody, Refusal>) {
        match (requester, result) {
            (Some(asked), result) => self.respond(asked, result),
            (None, Err(refusal)) => self.note_refused_return(&refusal),
            (None, Ok(_)) => {}
        }
    }

    fn note_refused_return(&mut self, refusal: &Refusal) {
        log::error!("update: the host cannot return to the image before: {refusal}");
        if self.confirmation.fail(&Tsc, refusal.code == RefusalCode::Invalid) {
            let reason = wire::bounded(&refusal.reason, wire::MAX_REASON_BYTES).to_string();
            record(EventKind::UpdateStays { generation: inherited::generation(), reason });
        }
    }

    /// Returns whether nothing passes the line: only in the test image, if that is asked for.
    pub(super) fn is_line_broken(&self) -> bool {
        fault::point!(crate::lifecycle::faults::update::is_line_broken(), else false)
    }
}

fn refusal(code: RefusalCode, reason: &str, hint: &str) -> Refusal {
    Refusal { code, reason: reason.into(), hint: hint.into() }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which requests are carried out: those that a control key has signed, where the bundle lists any. [`session`] decides
//! what is admitted.

use alloc::format;
use alloc::string::{String, ToString};

use session::{Admitted, Denied, Moment};
use wire::{EventKind, Refusal, RefusalCode, ReplyBody, Request, RequestBody};

use super::Control;
use super::guest_lines::{Asked, LineId};
use crate::arch::entropy::Instructions;
use crate::arch::timer;
use crate::guests::control_keys;
use crate::guests::events::record;

impl Control {
    /// Takes a request that has come over a line: carries it out if it may be.
    pub(super) fn take(&mut self, line: LineId, Request { id, body }: Request) {
        let asked = Asked { line, id };
        let moment = Moment { now_ns: timer::uptime_ns(), is_receiving: self.images.has_file() };
        let nonce = || entropy::seed(&mut Instructions::detect()).ok();
        let admitted = match self.grant_of(line) {
            None => self.guard.admit(body, moment, nonce),
            Some(grant) => self.guard.admit_of_guest(body, grant, moment, nonce),
        };
        match admitted {
            Ok(Admitted::Request(RequestBody::ControlKeys, _)) => {
                self.respond(asked, Ok(ReplyBody::ControlKeys(self.guard.list())));
            }
            Ok(Admitted::Request(RequestBody::RevokeControlKey { name }, by)) => {
                let result = self.revoke(&name, by);
                self.respond(asked, result);
            }
            Ok(Admitted::Request(body, _)) => self.answer(asked, body),
            Ok(Admitted::Challenge(challenge)) => {
                self.respond(asked, Ok(ReplyBody::Challenge(challenge)));
            }
            Err(denied) => {
                self.note_denied(line, denied.key().map(ToString::to_string), denied.to_string());
                self.respond(asked, Err(refusal(&denied)));
            }
        }
    }

    /// Discards sessions that no client uses any more.
    pub(super) fn expire_sessions(&mut self) {
        if let Some(unanswered) = self.guard.expire(timer::uptime_ns()) {
            let session::Unanswered { key, challenges } = unanswered;
            let reason = format!(
                "{challenges} challenges were not answered within {} s; does the client hold this key?",
                session::CHALLENGE_S
            );
            // There are no more of them than a few for each key in that time.
            record(EventKind::RequestDenied { key: Some(key), reason });
        }
    }

    fn revoke(&mut self, name: &str, by: Option<String>) -> Result<ReplyBody, Refusal> {
        if !self.updates.is_idle() || !control_keys::has_room() {
            let reason = "a key cannot be revoked now: an update is under way, or too many were revoked".into();
            let hint = "try again after the update, or update the host with a bundle that does not list the key".into();
            return Err(Refusal { code: RefusalCode::WrongState, reason, hint });
        }
        if let Some(key) = self.guard.revoke(name).map_err(|denied| refusal(&denied))? {
            control_keys::note(key);
            log::warn!("control: key {name} is revoked");
            record(EventKind::KeyRevoked { key: name.to_string(), by });
        }
        Ok(ReplyBody::Done)
    }

    /// Records that a client was refused: not more often than refusals of noise.
    fn note_denied(&mut self, line: LineId, key: Option<String>, reason: String) {
        let Some(left_out) = self.take_refusal(line) else { return };
        let reason = if left_out > 0 { format!("{reason}; {left_out} more were refused before") } else { reason };
        record(EventKind::RequestDenied { key, reason });
    }
}

fn refusal(denied: &Denied) -> Refusal {
    Refusal { code: denied.code(), reason: denied.to_string(), hint: denied.hint().to_string() }
}

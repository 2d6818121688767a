// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which requests are carried out: those that a control key has signed, where the bundle lists any. What is admitted is
//! decided in [`session`].

use alloc::format;
use alloc::string::{String, ToString};

use bundle::{ControlKeyConfig, ControlRole};
use session::{Admitted, Denied, Guard, Key, Moment, Plain};
use wire::{EventKind, Refusal, RefusalCode, ReplyBody, Request, RequestBody, Response, Role};

use super::Control;
use super::answering::REFUSAL_INTERVAL_US;
use crate::arch::entropy::Instructions;
use crate::arch::{cpu, timer};
use crate::guests::events::record;
use crate::guests::{configuration, control_keys};

/// The guard of this host's control channel, without a session.
pub(super) fn guard() -> Guard {
    let host = configuration::host();
    let plain = if host.demands_sessions() { Plain::Denied } else { Plain::Admitted };
    let mut guard = Guard::new(host.control_keys.iter().map(key).collect(), plain);
    guard.adopt(control_keys::section().iter().map(|revoked| revoked.key));
    if guard.demands_sessions() {
        let keys = guard.list().len();
        log::info!("control: requests have to be signed by one of {keys} control keys");
        if let Err(error) = entropy::seed(&mut Instructions::detect()) {
            log::error!("control: no session can begin, no request is taken: {error}");
        }
    }
    guard
}

fn key(config: &ControlKeyConfig) -> Key {
    let role = match config.role {
        ControlRole::Revoked => None,
        ControlRole::Read => Some(Role::Read),
        ControlRole::Operate => Some(Role::Operate),
        ControlRole::Update => Some(Role::Update),
    };
    Key { name: config.name.clone(), key: seal::PublicKey::from_bytes(config.key), role }
}

impl Control {
    /// Takes a request that has come: carries it out if it may be.
    pub(super) fn take(&mut self, Request { id, body }: Request) {
        let moment = Moment { now_ns: timer::uptime_ns(), is_receiving: self.images.has_file() };
        let nonce = || entropy::seed(&mut Instructions::detect()).ok();
        match self.guard.admit(body, moment, nonce) {
            Ok(Admitted::Request(RequestBody::ControlKeys, _)) => {
                self.respond(Response { id, result: Ok(ReplyBody::ControlKeys(self.guard.list())) });
            }
            Ok(Admitted::Request(RequestBody::RevokeControlKey { name }, by)) => {
                let result = self.revoke(&name, by);
                self.respond(Response { id, result });
            }
            Ok(Admitted::Request(body, _)) => self.answer(Request { id, body }),
            Ok(Admitted::Challenge(challenge)) => {
                self.respond(Response { id, result: Ok(ReplyBody::Challenge(challenge)) });
            }
            Err(denied) => {
                self.note_denied(denied.key().map(ToString::to_string), denied.to_string());
                self.respond(Response { id, result: Err(refusal(&denied)) });
            }
        }
    }

    /// Forgets sessions that nobody uses any more.
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
    fn note_denied(&mut self, key: Option<String>, reason: String) {
        let Some(left_out) = self.refusals.take(cpu::tsc(), timer::us_to_ticks(REFUSAL_INTERVAL_US)) else { return };
        let reason = if left_out > 0 { format!("{reason}; {left_out} more were refused before") } else { reason };
        record(EventKind::RequestDenied { key, reason });
    }
}

fn refusal(denied: &Denied) -> Refusal {
    Refusal { code: denied.code(), reason: denied.to_string(), hint: denied.hint().to_string() }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client's requests, one after the other: its role first, then the audit log, then the host.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Error;
use futures_util::future::{Either, select};
use tokio::sync::{mpsc, watch};
use wire::{Frame, MAX_REASON_BYTES, Refusal, RefusalCode, ReplyBody, Request, RequestBody, Response, Role, bounded};

use super::naming::{Named, end_of, named};
use super::streams::Wanted;
use super::{Outgoing, encoded};
use crate::access::Peer;
use crate::audit::Order;
use crate::ending::{Ending, Stage};
use crate::host::{Failure, Host};
use crate::service::Service;
use crate::updates::{By, End, How};

/// The time for a host's answer, as the tool has it: for any request, and for one that replaces the image.
const ANSWER: Duration = Duration::from_secs(30);
const SWITCH: Duration = Duration::from_secs(120);
/// Orders of many requests that are remembered as written down.
const MAX_SEEN: usize = 256;

/// The host's line has been lost: the client's ends, too.
struct Lost;

/// A client's requests.
pub(super) struct Worker {
    service: Arc<Service>,
    peer: Peer,
    host: Arc<Host>,
    wanted: watch::Sender<Wanted>,
    out: Outgoing,
    /// Orders of many requests that are in the audit log.
    seen: BTreeSet<Named>,
}

impl Worker {
    pub(super) fn new(
        service: Arc<Service>,
        peer: Peer,
        host: Arc<Host>,
        wanted: watch::Sender<Wanted>,
        out: Outgoing,
    ) -> Self {
        Self { service, peer, host, wanted, out, seen: BTreeSet::new() }
    }

    /// Answers requests until the client goes, the host's line is lost or the service ends; the one under way is
    /// answered first.
    pub(super) async fn work(mut self, mut requests: mpsc::Receiver<Request>) {
        let mut ending = self.service.ending.clone();
        while let Some(Request { id, body }) = next(&mut requests, &mut ending, &self.out).await {
            let Ok(result) = self.answer(body).await else { return };
            if self.out.send(encoded(&Frame::Response(Response { id, result }))).await.is_err() {
                return;
            }
        }
    }

    async fn answer(&mut self, body: RequestBody) -> Result<Result<ReplyBody, Refusal>, Lost> {
        match body {
            RequestBody::Subscribe(kinds) => {
                self.wanted.send_replace(Wanted { kinds, only: None });
                Ok(Ok(ReplyBody::Done))
            }
            RequestBody::SubscribeConsoles { names } => {
                self.wanted.send_modify(|wanted| {
                    wanted.kinds.consoles = !names.is_empty();
                    wanted.only = Some(names);
                });
                Ok(Ok(ReplyBody::Done))
            }
            RequestBody::SessionBegin { .. } | RequestBody::Signed(_) => Ok(Err(refusal(
                RefusalCode::Invalid,
                "baton serve signs requests with its own key",
                "leave out --key: the client's certificate states its role",
            ))),
            body => self.carried_out(body).await,
        }
    }

    /// Has the host carry a request out, if the client's role permits that. An order is written down before.
    async fn carried_out(&mut self, body: RequestBody) -> Result<Result<ReplyBody, Refusal>, Lost> {
        let (needed, named) = (body.role(), named(&body));
        if self.peer.role < Some(needed) {
            return Ok(Err(self.denied(needed, named)));
        }
        let number = match named.filter(|named| !named.is_once || self.is_new(named)).map(|named| self.written(&named))
        {
            Some(Err(refusal)) => return Ok(Err(refusal)),
            Some(Ok(number)) => Some(number),
            None => None,
        };
        let (host, who) = (self.host.clone(), self.peer.who.clone());
        let Some(number) = number else { return asked(&host, &who, body).await };
        let service = self.service.clone();
        // An order is a task of its own: a client that goes does not end it.
        let carrying = tokio::spawn(async move {
            let result = asked(&host, &who, body).await;
            let (end, message) = match &result {
                Ok(result) => end_of(result),
                Err(Lost) => ("unreachable", "the line was lost"),
            };
            service.audit.answered(number, end, message);
            result
        });
        carrying.await.unwrap_or(Err(Lost))
    }

    /// Returns whether this order of many requests has not been written down yet.
    fn is_new(&mut self, named: &Named) -> bool {
        if self.seen.len() >= MAX_SEEN {
            self.seen.clear();
        }
        self.seen.insert(named.clone())
    }

    fn written(&self, named: &Named) -> Result<u64, Refusal> {
        let order = Order { host: &self.host.name, request: named.request, subject: &named.subject };
        self.service.audit.asked(&self.peer, &order).map_err(|error| {
            let reason = format!("nothing is done, since the audit log cannot be written: {error}");
            refusal(RefusalCode::Failed, &reason, "make room for it")
        })
    }

    fn denied(&self, needed: Role, named: Option<Named>) -> Refusal {
        let (who, role) = (&self.peer.who, self.peer.role.unwrap_or(Role::Read));
        let reason = format!("{who} has the role {role}, and this needs {needed}");
        // A piece of a file has no name: its announcement was denied before.
        if let Some(Named { request, subject, .. }) = named {
            let subject = format!("{request} {subject}");
            let order = Order { host: &self.host.name, request: "denied", subject: subject.trim_end() };
            if let Ok(number) = self.service.audit.asked(&self.peer, &order) {
                self.service.audit.answered(number, "denied", &reason);
            }
        }
        refusal(RefusalCode::Denied, &reason, "use a certificate with that role, or change [roles] of the access file")
    }
}

/// Returns the client's next request; `None` when it has gone, or takes no answers, or the service ends.
async fn next(requests: &mut mpsc::Receiver<Request>, ending: &mut Ending, out: &Outgoing) -> Option<Request> {
    if ending.has_come(Stage::Closing) {
        return None;
    }
    let (ends, goes) = (pin!(ending.comes(Stage::Closing)), pin!(out.closed()));
    match select(pin!(requests.recv()), select(ends, goes)).await {
        Either::Left((request, _)) => request,
        Either::Right(_) => None,
    }
}

/// Has the host answer a request. An update is one of the service's, too: it waits for it when it ends.
async fn asked(host: &Arc<Host>, who: &str, body: RequestBody) -> Result<Result<ReplyBody, Refusal>, Lost> {
    let update = match begin_update(host, who, &body) {
        Ok(update) => update,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let is_switch = update.is_some() || matches!(body, RequestBody::Restart | RequestBody::RestartUploaded);
    let limit = if is_switch { SWITCH } else { ANSWER };
    let answer = match host.submit(move |client| client.request_within(limit, body)) {
        Ok(answer) => answer.await.map_err(|_| Failure::Unreachable("the line was lost".to_owned())),
        Err(failure) => Err(failure),
    };
    let result = answer.and_then(|result| Ok(result?));
    if let Some(id) = update {
        host.shared.end_update(id, end(&result));
    }
    match result {
        Ok(reply) => Ok(Ok(reply)),
        Err(Failure::Unreachable(_)) => Err(Lost),
        Err(Failure::Busy(reason)) => Ok(Err(refusal(RefusalCode::Exhausted, &reason, "try again"))),
        Err(Failure::Host(error)) => Ok(Err(refused(error))),
    }
}

/// Notes an update, if the request is one; returns its number.
fn begin_update(host: &Host, who: &str, body: &RequestBody) -> Result<Option<u64>, Refusal> {
    let (RequestBody::Update { is_dry_run, by } | RequestBody::UpdateUnlessConfirmed { is_dry_run, by, .. }) = *body
    else {
        return Ok(None);
    };
    let confirm_within = match body {
        RequestBody::UpdateUnlessConfirmed { seconds, .. } => Some(*seconds),
        _ => None,
    };
    let how = How { by: By::from(by), dry_run: is_dry_run, confirm_within, ..How::default() };
    host.shared.begin_update(who, how, 0).map(|update| Some(update.id)).map_err(|current| {
        let reason = format!("update {current} of {} is under way", host.name);
        refusal(RefusalCode::WrongState, &reason, "wait for its end")
    })
}

/// Returns the end of an update with this answer.
fn end(result: &Result<ReplyBody, Failure>) -> End {
    End::of(match result {
        Ok(ReplyBody::Updated(report)) => Ok((Some(report.clone()), None)),
        Ok(_) => Ok((None, None)),
        Err(Failure::Host(error)) => Err(match error.downcast_ref::<Refusal>() {
            Some(refusal) => refusal.clone().into(),
            None => Error::msg(format!("{error:#}")),
        }),
        Err(Failure::Unreachable(reason) | Failure::Busy(reason)) => Err(Error::msg(reason.clone())),
    })
}

/// Returns the host's own refusal, or one with the reason for which there is no answer.
fn refused(error: Error) -> Refusal {
    error.downcast::<Refusal>().unwrap_or_else(|error| refusal(RefusalCode::Failed, &format!("{error:#}"), ""))
}

fn refusal(code: RefusalCode, reason: &str, hint: &str) -> Refusal {
    Refusal { code, reason: bounded(reason, MAX_REASON_BYTES).to_owned(), hint: hint.to_owned() }
}

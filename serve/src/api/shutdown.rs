// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of a guest in order: its power button, and if it is wanted a stop of a guest that runs on.
//!
//! The wait is a task of the service. Between two polls the line is free for others.

use std::time::{Duration, Instant};

use axum::extract::{Path, State};
use axum::{Extension, Json};
use baton::suggest::did_you_mean;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;
use utoipa::{IntoParams, ToSchema};
use wire::{RequestBody, VmInfo, VmState};

use super::extract::Asked;
use super::orders::recorded;
use super::{App, ErrorBody, Refused};
use crate::access::Peer;
use crate::ending::{Ending, Stage};
use crate::host::Host;

/// The longest wait for a guest, in seconds.
pub(super) const MAX_TIMEOUT: u32 = 3600;
/// The interval between two polls.
const POLL: Duration = Duration::from_millis(250);
/// The longest that a stopped guest takes to end: its memory is freed.
const STOPPING: Duration = Duration::from_secs(30);

/// The wait for a guest's end.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// Seconds, 0 to 3,600, after which a guest that still runs is stopped, as if its power were cut [default: the
    /// answer comes at once, and the guest is not stopped].
    pub timeout: Option<u32>,
}

/// The outcome of a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Its power button was pressed.
    Asked,
    /// It has shut down.
    ShutDown,
    /// It had ended before.
    StoppedAlready,
    /// It did not shut down in time, and was stopped.
    Stopped,
    /// It has failed.
    Failed,
}

/// The end of a guest.
#[derive(Serialize, ToSchema)]
pub struct Ended {
    /// The guest.
    pub name: String,
    /// The outcome.
    pub done: Outcome,
    /// The reason for its end, as the host reports it.
    pub reason: Option<String>,
    /// Seconds since the order.
    pub seconds: f64,
}

#[utoipa::path(post, path = "/api/v1/hosts/{host}/guests/{guest}/shutdown",
    params(("host" = String, Path), ("guest" = String, Path), Wait),
    responses((status = 200, body = Ended), (status = 400, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 409, body = ErrorBody), (status = 503, body = ErrorBody)))]
/// Press a guest's power button; with `timeout` wait for its end, and stop one that runs on (role operate)
pub(super) async fn shutdown(
    State(app): State<App>,
    Extension(peer): Extension<Peer>,
    Path((host, guest)): Path<(String, String)>,
    Asked(Wait { timeout }): Asked<Wait>,
) -> Result<Json<Ended>, Refused> {
    if timeout.is_some_and(|seconds| seconds > MAX_TIMEOUT) {
        return Err(Refused::invalid(format!("timeout is 0 to {MAX_TIMEOUT} seconds")));
    }
    let host = app.host(&host)?.clone();
    let timeout = timeout.map(|seconds| Duration::from_secs(seconds.into()));
    let (of, name, ending) = (host.clone(), guest.clone(), app.ending.clone());
    let ends = async move { Guest { host: &of, name, begun: Instant::now(), ending }.shut_down(timeout).await };
    recorded(app, &peer, &host, ("guest-shutdown", &guest), ends).await.map(Json)
}

/// A guest that is to end.
struct Guest<'h> {
    host: &'h Host,
    name: String,
    begun: Instant,
    ending: Ending,
}

impl Guest<'_> {
    async fn shut_down(self, timeout: Option<Duration>) -> Result<Ended, Refused> {
        let vm = vm(self.host, &self.name).await?;
        if vm.state.has_ended() {
            return Ok(self.ended(Outcome::StoppedAlready, vm.reason));
        }
        self.order(RequestBody::VmShutdown { name: self.name.clone() }).await?;
        let Some(timeout) = timeout else { return Ok(self.ended(Outcome::Asked, None)) };
        if let Some(vm) = self.end_within(timeout).await? {
            return Ok(self.ended(outcome(vm.state, Outcome::ShutDown), vm.reason));
        }
        let stopped = self.order(RequestBody::VmStop { name: self.name.clone() }).await;
        // One that has ended just before the order is no error.
        let limit = if stopped.is_ok() { STOPPING } else { Duration::ZERO };
        match (self.end_within(limit).await?, stopped) {
            (Some(vm), _) => Ok(self.ended(outcome(vm.state, Outcome::Stopped), vm.reason)),
            (None, Err(refused)) => Err(refused),
            (None, Ok(())) => {
                let name = &self.name;
                Err(Refused::failed(format!("guest {name} was stopped, and has not ended within {STOPPING:?}")))
            }
        }
    }

    async fn order(&self, body: RequestBody) -> Result<(), Refused> {
        Ok(self.host.ask(move |client| client.order(body)).await?)
    }

    /// Waits at most so long for its end.
    async fn end_within(&self, limit: Duration) -> Result<Option<VmInfo>, Refused> {
        let begun = Instant::now();
        loop {
            let vm = vm(self.host, &self.name).await?;
            if vm.state.has_ended() {
                return Ok(Some(vm));
            }
            if begun.elapsed() >= limit {
                return Ok(None);
            }
            if self.ending.has_come(Stage::Closing) {
                return Err(Refused::ending());
            }
            sleep(POLL).await;
        }
    }

    fn ended(&self, done: Outcome, reason: Option<String>) -> Ended {
        Ended { name: self.name.clone(), done, reason, seconds: self.begun.elapsed().as_secs_f64() }
    }
}

fn outcome(state: VmState, usual: Outcome) -> Outcome {
    if state == VmState::Failed { Outcome::Failed } else { usual }
}

/// Returns a guest as it is now.
pub(super) async fn vm(host: &Host, name: &str) -> Result<VmInfo, Refused> {
    let vms = host.ask(|client| client.vms()).await?;
    named(&vms, &host.name, name).cloned()
}

/// Returns the guest of that name.
pub(super) fn named<'v>(vms: &'v [VmInfo], host: &str, name: &str) -> Result<&'v VmInfo, Refused> {
    vms.iter().find(|vm| vm.name == name).ok_or_else(|| {
        let hint = did_you_mean(name, vms.iter().map(|vm| vm.name.as_str()));
        Refused::not_found(format!("there is no guest {name:?} at {host}{hint}"))
    })
}

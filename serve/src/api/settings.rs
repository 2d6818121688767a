// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings of a guest.

use axum::extract::{Path, State};
use axum::{Extension, Json};
use serde::Deserialize;
use utoipa::ToSchema;
use wire::{RequestBody, VmSettings};

use super::extract::Described;
use super::orders::{Done, done};
use super::{App, ErrorBody, Refused};
use crate::access::Peer;

/// Settings of a guest; those that are left out stay as they are.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Its share where several vCPUs have one CPU: 1 to 1,024; at once.
    pub weight: Option<u32>,
    /// The most of one CPU's time in percent that its vCPUs together get, up to 51,200; 0: as much as there is; at
    /// once.
    pub cap_percent: Option<u32>,
    /// The action when its kernel has panicked or hangs: `throttle`, `stop`, `reset`, `dump` or `ignore`.
    pub on_panic: Option<String>,
    /// True if it starts with the host.
    pub autostart: Option<bool>,
    /// Its vCPUs, 1 to 512; while it does not run.
    pub vcpus: Option<u32>,
    /// Its memory in bytes, whole MiB; while it does not run. With memory on demand: what it is assured.
    pub memory_bytes: Option<u64>,
    /// The memory in bytes that it sees and has once it touches it, whole 2 MiB, not less than what it is assured. As
    /// much as that: it has all of it from its start. While it does not run.
    pub memory_max_bytes: Option<u64>,
}

#[utoipa::path(post, path = "/api/v1/hosts/{host}/guests/{guest}/set",
    params(("host" = String, Path), ("guest" = String, Path)), request_body = Settings,
    responses((status = 200, body = Done), (status = 400, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 409, body = ErrorBody), (status = 422, body = ErrorBody),
        (status = 503, body = ErrorBody)))]
/// Change a guest's settings (role operate)
pub(super) async fn set(
    State(app): State<App>,
    Extension(peer): Extension<Peer>,
    Path((host, guest)): Path<(String, String)>,
    Described(settings): Described<Settings>,
) -> Result<Json<Done>, Refused> {
    let Settings { weight, cap_percent, on_panic, autostart, vcpus, memory_bytes, memory_max_bytes } = settings;
    let settings = VmSettings { weight, on_panic, autostart, vcpus, memory_bytes, cap_percent, memory_max_bytes };
    let mut answer =
        Err(Refused::invalid(format!("no setting of {guest} is stated; state one, as {{\"weight\": 200}}")));
    for settings in settings.in_requests() {
        let body = RequestBody::VmSet { name: guest.clone(), settings };
        answer = Ok(done(app.clone(), peer.clone(), &host, "guest-set", guest.clone(), body).await?);
    }
    answer
}

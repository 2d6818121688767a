// SPDX-License-Identifier: MIT OR Apache-2.0
//! Orders. Each is written down before it is carried out, and carried out to its end even if its client has gone.

use std::future::Future;
use std::sync::Arc;

use anyhow::Result;
use axum::extract::{Path, State};
use axum::{Extension, Json};
use baton::client::Client;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wire::{PciProgress, ReplyBody, RequestBody};

use super::extract::Described;
use super::{App, ErrorBody, Refused};
use crate::access::Peer;
use crate::audit::Order;
use crate::host::{Failure, Host};

/// An order that was carried out.
#[derive(Serialize, ToSchema)]
pub struct Done {
    /// The order, as the audit log names it.
    pub done: String,
    /// The guest, the CPU or the function.
    pub subject: String,
}

/// An order for one guest.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GuestOrder {
    /// From its kernel.
    Start,
    /// At once, as if its power were cut.
    Stop,
    /// Halt its vCPUs where they are.
    Pause,
    /// Let it go on.
    Resume,
    /// Start it again from its kernel.
    Reset,
    /// Remove it from the host; one that does not run.
    Delete,
}

/// An order for one CPU.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CpuOrder {
    /// Use it.
    Online,
    /// Move its vCPUs elsewhere and halt it.
    Offline,
}

/// A PCI function to assign.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Assign {
    /// Its address, or another choice as `devices` of host.toml takes it.
    pub function: String,
    /// The guest.
    pub guest: String,
    /// Also if nothing can reset it.
    #[serde(default)]
    pub without_reset: bool,
}

/// A PCI function to release.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// Its address, or another choice as `devices` of host.toml takes it.
    pub function: String,
    /// The guest, if several are to have it.
    #[serde(default)]
    pub guest: Option<String>,
    /// Take it away from a guest that runs without asking that.
    #[serde(default)]
    pub forced: bool,
}

/// The result of a change of a PCI function's guest.
#[derive(Serialize, ToSchema)]
pub struct Assigned {
    /// The function's address.
    pub function: String,
    /// The guest.
    pub guest: String,
    /// `done`, `asked` (the guest is asked to eject it) or `next-start`.
    #[schema(value_type = String)]
    pub progress: PciProgress,
}

#[utoipa::path(post, path = "/api/v1/hosts/{host}/guests/{guest}/{order}",
    params(("host" = String, Path), ("guest" = String, Path), ("order" = GuestOrder, Path)),
    responses((status = 200, body = Done), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody), (status = 503, body = ErrorBody)))]
/// Start, stop, pause, resume, reset or delete a guest (role operate)
pub(super) async fn guest(
    State(app): State<App>,
    Extension(peer): Extension<Peer>,
    Path((host, guest, order)): Path<(String, String, GuestOrder)>,
) -> Result<Json<Done>, Refused> {
    let name = guest.clone();
    let (request, body) = match order {
        GuestOrder::Start => ("guest-start", RequestBody::VmStart { name }),
        GuestOrder::Stop => ("guest-stop", RequestBody::VmStop { name }),
        GuestOrder::Pause => ("guest-pause", RequestBody::VmPause { name }),
        GuestOrder::Resume => ("guest-resume", RequestBody::VmResume { name }),
        GuestOrder::Reset => ("guest-reset", RequestBody::VmReset { name }),
        GuestOrder::Delete => ("guest-delete", RequestBody::VmDelete { name }),
    };
    done(app, peer, &host, request, guest, body).await
}

#[utoipa::path(post, path = "/api/v1/hosts/{host}/cpus/{cpu}/{order}",
    params(("host" = String, Path), ("cpu" = u32, Path), ("order" = CpuOrder, Path)),
    responses((status = 200, body = Done), (status = 403, body = ErrorBody), (status = 409, body = ErrorBody)))]
/// Take a CPU online or offline (role operate)
pub(super) async fn cpu(
    State(app): State<App>,
    Extension(peer): Extension<Peer>,
    Path((host, index, order)): Path<(String, u32, CpuOrder)>,
) -> Result<Json<Done>, Refused> {
    let (request, body) = match order {
        CpuOrder::Online => ("cpu-online", RequestBody::CpuOnline { index }),
        CpuOrder::Offline => ("cpu-offline", RequestBody::CpuOffline { index }),
    };
    done(app, peer, &host, request, index.to_string(), body).await
}

#[utoipa::path(post, path = "/api/v1/hosts/{host}/power-off", params(("host" = String, Path)),
    responses((status = 200, body = Done), (status = 403, body = ErrorBody), (status = 503, body = ErrorBody)))]
/// Stop every guest and power the host off (role update)
pub(super) async fn power_off(
    State(app): State<App>,
    Extension(peer): Extension<Peer>,
    Path(host): Path<String>,
) -> Result<Json<Done>, Refused> {
    done(app, peer, &host, "power-off", String::new(), RequestBody::PowerOff).await
}

#[utoipa::path(post, path = "/api/v1/hosts/{host}/pci/assign", params(("host" = String, Path)), request_body = Assign,
    responses((status = 200, body = Assigned), (status = 403, body = ErrorBody), (status = 409, body = ErrorBody)))]
/// Assign a PCI function to a guest (role operate)
pub(super) async fn assign(
    State(app): State<App>,
    Extension(peer): Extension<Peer>,
    Path(host): Path<String>,
    Described(Assign { function, guest, without_reset }): Described<Assign>,
) -> Result<Json<Assigned>, Refused> {
    let subject = format!("{function} to {guest}");
    let body = RequestBody::PciAssign { function, guest, without_reset };
    carried_out(app, peer, &host, "pci-assign", subject, move |client| assigned(client, body)).await.map(Json)
}

#[utoipa::path(post, path = "/api/v1/hosts/{host}/pci/release", params(("host" = String, Path)),
    request_body = Release,
    responses((status = 200, body = Assigned), (status = 403, body = ErrorBody), (status = 409, body = ErrorBody)))]
/// Release a PCI function from a guest (role operate)
pub(super) async fn release(
    State(app): State<App>,
    Extension(peer): Extension<Peer>,
    Path(host): Path<String>,
    Described(Release { function, guest, forced }): Described<Release>,
) -> Result<Json<Assigned>, Refused> {
    let subject = function.clone();
    let body = RequestBody::PciRelease { function, guest, is_forced: forced };
    carried_out(app, peer, &host, "pci-release", subject, move |client| assigned(client, body)).await.map(Json)
}

fn assigned(client: &mut Client, body: RequestBody) -> Result<Assigned> {
    match client.request(body)? {
        ReplyBody::PciAssignment { place: (segment, bus, device, function), guest, progress } => {
            Ok(Assigned { function: format!("{segment:04x}:{bus:02x}:{device:02x}.{function:x}"), guest, progress })
        }
        other => anyhow::bail!("the host answered something else ({other:?}); use service and host of one release"),
    }
}

/// Has a host carry out a request that it answers without anything to report.
pub(super) async fn done(
    app: App,
    peer: Peer,
    host: &str,
    request: &'static str,
    subject: String,
    body: RequestBody,
) -> Result<Json<Done>, Refused> {
    let answer = Done { done: request.to_owned(), subject: subject.clone() };
    carried_out(app, peer, host, request, subject, move |client| client.order(body)).await?;
    Ok(Json(answer))
}

/// Writes the order down, has the host carry it out, and writes the answer down.
pub(super) async fn carried_out<T: Send + 'static>(
    app: App,
    peer: Peer,
    host: &str,
    request: &'static str,
    subject: String,
    job: impl FnOnce(&mut Client) -> Result<T> + Send + 'static,
) -> Result<T, Refused> {
    let host = app.host(host)?.clone();
    let of = host.clone();
    recorded(app, &peer, &host, (request, &subject), async move { of.ask(job).await.map_err(Refused::from) }).await
}

/// Writes an order down, carries it out, and writes its end down.
pub(super) async fn recorded<T: Send + 'static>(
    app: App,
    peer: &Peer,
    host: &Arc<Host>,
    (request, subject): (&str, &str),
    work: impl Future<Output = Result<T, Refused>> + Send + 'static,
) -> Result<T, Refused> {
    let number = written(&app, peer, host, request, subject)?;
    // A task of its own: a client that goes does not end it.
    let carrying = tokio::spawn(async move {
        let result = work.await;
        answered(&app, number, &result);
        result
    });
    carrying.await.unwrap_or_else(|error| Err(Refused::failed(format!("the order has failed: {error}"))))
}

/// Has a host carry out a job that may take long, and waits for its end without a limit.
pub(super) async fn answer_of<T: Send + 'static>(
    host: &Host,
    job: impl FnOnce(&mut Client) -> Result<T> + Send + 'static,
) -> Result<T, Refused> {
    match host.submit(job)?.await {
        Ok(result) => result.map_err(|error| Failure::Host(error).into()),
        Err(_) => Err(Failure::Unreachable(format!("{}: the line was lost", host.name)).into()),
    }
}

/// Writes an order down; without that it is not carried out.
pub(super) fn written(app: &App, peer: &Peer, host: &Arc<Host>, request: &str, subject: &str) -> Result<u64, Refused> {
    app.audit.asked(peer, &Order { host: &host.name, request, subject }).map_err(|error| {
        Refused::failed(format!("nothing is done, since the audit log cannot be written: {error}; make room for it"))
    })
}

/// Writes the end of an order down.
pub(super) fn answered<T>(app: &App, number: u64, result: &Result<T, Refused>) {
    match result {
        Ok(_) => app.audit.answered(number, "done", ""),
        Err(refused) => app.audit.answered(number, refused.body.error, &refused.body.message),
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The upgrade of a connection to the control channel's own protocol, for the tool.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::{CONNECTION, UPGRADE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use hyper_util::rt::TokioIo;

use super::{App, ErrorBody, Refused};
use crate::access::Peer;
use crate::control::{self, PROTOCOL};
use crate::ending::Stage;
use crate::host::Host;
use crate::listen::Hold;

#[utoipa::path(get, path = "/api/v1/hosts/{host}/control", params(("host" = String, Path)),
    responses((status = 101, description = "The connection carries frames of the control channel from here on"),
        (status = 403, body = ErrorBody), (status = 404, body = ErrorBody), (status = 426, body = ErrorBody),
        (status = 503, body = ErrorBody)))]
/// Operate a host with `baton --connect https://…` (`Upgrade: baton-control`); each request needs its own role
pub(super) async fn host(
    State(app): State<App>,
    Extension(peer): Extension<Peer>,
    Extension(hold): Extension<Hold>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Refused> {
    let host = app.host(&name)?.clone();
    upgraded(app, peer, hold, host, request)
}

#[utoipa::path(get, path = "/api/v1/control",
    responses((status = 101, description = "The connection carries frames of the control channel from here on"),
        (status = 400, body = ErrorBody), (status = 403, body = ErrorBody), (status = 426, body = ErrorBody),
        (status = 503, body = ErrorBody)))]
/// The same for the only host of the service
pub(super) async fn only_host(
    State(app): State<App>,
    Extension(peer): Extension<Peer>,
    Extension(hold): Extension<Hold>,
    request: Request,
) -> Result<Response, Refused> {
    let mut hosts = app.hosts.values();
    let (Some(host), None) = (hosts.next().cloned(), hosts.next()) else {
        let names: Vec<&str> = app.hosts.keys().map(String::as_str).collect();
        return Err(Refused::invalid(format!(
            "the service has {} hosts ({}); add a name to the address, as https://SERVICE:PORT/NAME",
            names.len(),
            names.join(", ")
        )));
    };
    upgraded(app, peer, hold, host, request)
}

fn upgraded(app: App, peer: Peer, hold: Hold, host: Arc<Host>, mut request: Request) -> Result<Response, Refused> {
    let wanted = request.headers().get(UPGRADE).and_then(|value| value.to_str().ok());
    if !wanted.is_some_and(|wanted| wanted.eq_ignore_ascii_case(PROTOCOL)) {
        let message = format!("this path is for `baton --connect https://…` (Upgrade: {PROTOCOL})");
        return Err(Refused::new(StatusCode::UPGRADE_REQUIRED, "invalid", message));
    }
    host.reached()?;
    if app.ending.has_come(Stage::Closing) {
        return Err(Refused::ending());
    }
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        if let Ok(stream) = upgrade.await {
            control::carry(TokioIo::new(stream), app, peer, host).await;
        }
        // Up to here the connection counts as one of the service's clients.
        drop(hold);
    });
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
    response.headers_mut().insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
    Ok(response)
}

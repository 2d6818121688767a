// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames between guests as a file.

use std::time::{Duration, Instant};

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use baton::client::{MAX_SNAP_BYTES, some_number};
use baton::clock::booted_ms;
use baton::pcapng::PcapNg;
use serde::Deserialize;
use tokio::time::sleep;
use utoipa::IntoParams;
use wire::{CapturePage, ReplyBody, RequestBody};

use super::extract::Asked;
use super::figures::{length, unexpected};
use super::orders::recorded;
use super::{App, ErrorBody, Refused};
use crate::access::Peer;
use crate::host::{Failure, Host};

/// The usual length, in seconds.
const USUAL_SECONDS: f64 = 10.0;
/// The interval between two requests for frames, once there are none left.
const INTERVAL: Duration = Duration::from_millis(100);
/// The most bytes of a file; the capture ends with them.
const MAX_BYTES: usize = 64 << 20;

/// The frames to capture.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct Which {
    /// Seconds for which to capture: more than 0, 60 at most [default: 10].
    pub seconds: Option<f64>,
    /// Only frames that this guest sends or receives.
    pub guest: Option<String>,
    /// The most bytes of a frame that are kept [default: 3,028, which is the most].
    pub snap: Option<u32>,
}

#[utoipa::path(post, path = "/api/v1/hosts/{host}/networks/{network}/capture",
    params(("host" = String, Path), ("network" = String, Path), Which),
    responses((status = 200, body = Vec<u8>, content_type = "application/x-pcapng",
            description = "A file of the format pcapng"),
        (status = 400, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody), (status = 503, body = ErrorBody)))]
/// Capture frames between guests (role operate)
pub(super) async fn capture(
    State(app): State<App>,
    Extension(peer): Extension<Peer>,
    Path((host, network)): Path<(String, String)>,
    Asked(Which { seconds, guest, snap }): Asked<Which>,
) -> Result<Response, Refused> {
    let time = length(seconds, USUAL_SECONDS)?;
    let host = app.host(&host)?.clone();
    let (of, on, snap_bytes) = (host.clone(), network.clone(), snap.unwrap_or(MAX_SNAP_BYTES).min(MAX_SNAP_BYTES));
    let work = async move {
        let by = some_number();
        taken(&of, by, time, RequestBody::CaptureBegin { by, network: on, guest, snap_bytes }, snap_bytes).await
    };
    let file = recorded(app, &peer, &host, ("capture", &network), work).await?;
    Ok(([(CONTENT_TYPE, "application/x-pcapng")], file).into_response())
}

/// Takes a capture; a host that ends it early leaves the frames so far.
async fn taken(host: &Host, by: u32, time: Duration, begin: RequestBody, snap_bytes: u32) -> Result<Vec<u8>, Refused> {
    let uptime_ns = host.ask(|client| client.info()).await?.uptime_ns;
    let first = page(host, begin).await?;
    let written = |error: anyhow::Error| Refused::failed(error.to_string());
    let mut file = PcapNg::new(Vec::new(), Duration::from_millis(booted_ms(uptime_ns)), snap_bytes).map_err(written)?;
    file.add(&first).map_err(written)?;
    let end = Instant::now() + time;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let is_end = left.is_zero() || file.file().len() >= MAX_BYTES;
        let next = match page(host, RequestBody::CaptureRead { by, is_end }).await {
            Err(refused) if refused.body.code.is_none() => return Err(refused),
            Err(_) => return Ok(file.into_inner()),
            Ok(next) => next,
        };
        file.add(&next).map_err(written)?;
        match (is_end, next.frames.is_empty()) {
            (true, true) => return Ok(file.into_inner()),
            (false, true) => sleep(left.min(INTERVAL)).await,
            _ => {}
        }
    }
}

async fn page(host: &Host, question: RequestBody) -> Result<CapturePage, Refused> {
    match host.ask(move |client| client.request(question)).await? {
        ReplyBody::Capture(page) => Ok(page),
        other => Err(Failure::Host(unexpected(&other)).into()),
    }
}

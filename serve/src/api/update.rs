// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order to replace a host's image while its guests run. It is answered at once; its progress is news.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use tokio::time::timeout;
use wire::MAX_CONFIRM_SECONDS;

use super::extract::Asked;
use super::orders::written;
use super::{App, ErrorBody, Refused};
use crate::access::Peer;
use crate::ending::Stage;
use crate::host::Shared;
use crate::updates::{By, End, How, Step, Update, perform};

/// The most bytes of an image, a bundle or a guest's file.
const MAX_FILE_BYTES: usize = 256 << 20;
/// The time for a client to send them.
const PATIENCE: Duration = Duration::from_secs(600);

#[utoipa::path(post, path = "/api/v1/hosts/{host}/update", params(("host" = String, Path), How),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 202, body = Update), (status = 400, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 409, body = ErrorBody), (status = 503, body = ErrorBody)))]
/// Replace a host's image while its guests run (role update)
pub(super) async fn update(
    State(app): State<App>,
    Extension(peer): Extension<Peer>,
    Path(name): Path<String>,
    Asked(how): Asked<How>,
    body: Body,
) -> Result<(StatusCode, Json<Update>), Refused> {
    let host = app.host(&name)?.clone();
    host.reached()?;
    if how.confirm_within.is_some_and(|seconds| !(1..=MAX_CONFIRM_SECONDS).contains(&seconds)) {
        return Err(Refused::invalid(format!("confirm_within is 1 to {MAX_CONFIRM_SECONDS} seconds")));
    }
    let file = file(body, how.by).await?;
    if app.ending.has_come(Stage::Closing) {
        return Err(Refused::ending());
    }
    let request = if how.dry_run { "update-dry-run" } else { "update" };
    let number = written(&app, &peer, &host, request, by(how.by))?;
    let begun = host.shared.begin_update(&peer.who, how, file.len() as u64);
    let update = begun.map_err(|current| {
        let refused = Refused::conflict(format!("update {current} of {name} is under way; wait for its end"));
        app.audit.answered(number, refused.body.error, &refused.body.message);
        refused
    })?;
    let (shared, id) = (host.shared.clone(), update.id);
    let submitted = host.submit(move |client| {
        let result = perform(client, file, how, |step, sent| shared.note_progress(id, step, sent));
        // An update that was lost with its line has ended, too; the next use of the line shows whether that is good.
        Ok(End::of(result))
    });
    let end = match submitted {
        Ok(end) => end,
        Err(failure) => {
            let refused = Refused::from(failure);
            let end = End { step: Step::Failed, message: Some(refused.body.message.clone()), report: None };
            finish(&app, &host.shared, number, id, end);
            return Err(refused);
        }
    };
    tokio::spawn(async move {
        let end = match end.await {
            Ok(Ok(end)) => end,
            Ok(Err(error)) => End::of(Err(error)),
            Err(_) => End { step: Step::Failed, message: Some("the line was lost".to_owned()), report: None },
        };
        finish(&app, &host.shared, number, id, end);
    });
    Ok((StatusCode::ACCEPTED, Json(update)))
}

/// Reads the file from the request, if one is wanted.
pub(super) async fn file(body: Body, by: By) -> Result<Vec<u8>, Refused> {
    let file = received(body).await?;
    match (by, file.is_empty()) {
        (By::Image | By::UploadedBundle, true) => {
            Err(Refused::invalid("the request has no body; send the image in it, or choose one with ?by=".to_owned()))
        }
        (By::Bundle | By::Previous, false) => {
            Err(Refused::invalid("the request has a body that ?by= does not want; leave out one of them".to_owned()))
        }
        _ => Ok(file),
    }
}

/// Reads a file from the request.
pub(super) async fn received(body: Body) -> Result<Vec<u8>, Refused> {
    let read = timeout(PATIENCE, to_bytes(body, MAX_FILE_BYTES)).await;
    let Ok(read) = read else {
        return Err(Refused::invalid(format!("the file has not come within {PATIENCE:?}; send it again")));
    };
    let file = read.map_err(|error| Refused::invalid(format!("the file cannot be read: {error}")))?;
    Ok(file.to_vec())
}

pub(super) fn by(by: By) -> &'static str {
    match by {
        By::Image => "image",
        By::UploadedBundle => "uploaded-bundle",
        By::Bundle => "bundle",
        By::Previous => "previous",
    }
}

/// Notes the end, and writes it down.
fn finish(app: &App, shared: &Shared, number: u64, id: u64, end: End) {
    let message = end.message.clone().unwrap_or_default();
    let result = match end.step {
        Step::Done => "done",
        Step::Refused => "refused",
        _ => "failed",
    };
    app.audit.answered(number, result, &message);
    shared.end_update(id, end);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests' consoles: output as server-sent events, and typed bytes.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Extension;
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use baton::suggest::did_you_mean;
use futures_util::stream::{Stream, unfold};
use wire::{MAX_CONSOLE_BYTES, RequestBody};

use super::orders::{Done, done};
use super::stream::with_end;
use super::{App, ErrorBody, Refused};
use crate::access::Peer;
use crate::host::{Follower, Host, Piece};

/// The place up to which a browser has read before it connects again.
const LAST_EVENT: &str = "last-event-id";

#[utoipa::path(get, path = "/api/v1/hosts/{host}/guests/{guest}/console",
    params(("host" = String, Path), ("guest" = String, Path)),
    responses((status = 200, body = Piece, content_type = "text/event-stream",
        description = "Events `output`: what is kept, then what comes, and at last `end`. `id` is the place; the header Last-Event-ID goes \
        on there"),
        (status = 404, body = ErrorBody), (status = 503, body = ErrorBody)))]
/// Follow a guest's console: server-sent events
pub(super) async fn follow(
    State(app): State<App>,
    Path((host, guest)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refused> {
    let host = app.host(&host)?;
    check_guest(host, &guest)?;
    let last = headers.get(LAST_EVENT).and_then(|value| value.to_str().ok()).and_then(|text| text.parse().ok());
    let state = (host.follow(Some(vec![guest.clone()])), guest, last.unwrap_or(0));
    let pieces = unfold(state, |(mut follower, guest, place)| async move {
        let piece = next(&mut follower, &guest, place).await;
        let event = Event::default().event("output").id(piece.end.to_string()).json_data(&piece).ok()?;
        Some((Ok(event), (follower, guest, piece.end)))
    });
    Ok(Sse::new(with_end(pieces, app.ending.clone())).keep_alive(KeepAlive::default()))
}

/// Waits for the next piece from that place on.
async fn next(follower: &mut Follower, guest: &str, place: u64) -> Piece {
    loop {
        match follower.consoles().read(guest, place) {
            Some(piece) => return piece,
            None => follower.changed().await,
        }
    }
}

/// Refuses a guest that the host does not have: it would never write.
fn check_guest(host: &Arc<Host>, name: &str) -> Result<(), Refused> {
    let snapshot = host.reached()?;
    let names = || snapshot.guests.iter().map(|guest| guest.name.as_str());
    if names().any(|guest| guest == name) {
        return Ok(());
    }
    Err(Refused::not_found(format!("there is no guest {name:?} at {}{}", host.name, did_you_mean(name, names()))))
}

#[utoipa::path(post, path = "/api/v1/hosts/{host}/guests/{guest}/console",
    params(("host" = String, Path), ("guest" = String, Path)),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, body = Done), (status = 400, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 409, body = ErrorBody), (status = 503, body = ErrorBody)))]
/// Type 1 to 1,024 bytes on a guest's console (role operate)
pub(super) async fn type_bytes(
    State(app): State<App>,
    Extension(peer): Extension<Peer>,
    Path((host, guest)): Path<(String, String)>,
    bytes: Bytes,
) -> Result<Json<Done>, Refused> {
    if bytes.is_empty() || bytes.len() > MAX_CONSOLE_BYTES {
        let count = bytes.len();
        return Err(Refused::invalid(format!("these are {count} bytes: type 1 to {MAX_CONSOLE_BYTES} at once")));
    }
    // Typed bytes may be a password: the audit log has the guest alone.
    let body = RequestBody::ConsoleInput { name: guest.clone(), bytes: bytes.into() };
    done(app, peer, &host, "guest-type", guest, body).await
}

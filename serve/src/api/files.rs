// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files from which a host's guests start.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::{Extension, Json};
use baton::client::Client;
use seal::{Portable, Sha256};
use serde::Serialize;
use utoipa::ToSchema;
use wire::{FileInfo, RequestBody, UploadKind};

use super::orders::{Done, answer_of, done, recorded};
use super::reads::Answer;
use super::update::received;
use super::{App, ErrorBody, Refused};
use crate::access::Peer;
use crate::control::file_subject;
use crate::ending::Stage;

/// A file that the host has.
#[derive(Serialize, ToSchema)]
pub struct Sent {
    /// Its name there: the digits of its SHA-256.
    pub name: String,
    /// Its length.
    pub bytes: u64,
}

#[utoipa::path(get, path = "/api/v1/hosts/{host}/files", params(("host" = String, Path)),
    responses((status = 200, body = Vec<FileInfo>), (status = 404, body = ErrorBody),
        (status = 503, body = ErrorBody)))]
/// The files from which a host's guests start
pub(super) async fn list(State(app): State<App>, Path(name): Path<String>) -> Answer<Vec<FileInfo>> {
    Ok(Json(app.host(&name)?.ask(Client::files).await?))
}

#[utoipa::path(post, path = "/api/v1/hosts/{host}/files", params(("host" = String, Path)),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, body = Sent), (status = 400, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 409, body = ErrorBody), (status = 503, body = ErrorBody)))]
/// Send a host a file of a guest; one that it has is not sent again (role update)
pub(super) async fn send(
    State(app): State<App>,
    Extension(peer): Extension<Peer>,
    Path(name): Path<String>,
    body: Body,
) -> Result<Json<Sent>, Refused> {
    let host = app.host(&name)?.clone();
    host.reached()?;
    let content = received(body).await?;
    if content.is_empty() {
        return Err(Refused::invalid("the request has no body; send the file in it".to_owned()));
    }
    if app.ending.has_come(Stage::Closing) {
        return Err(Refused::ending());
    }
    let mut hash = Sha256::new(Portable);
    hash.update(&content);
    let digest = hash.finish();
    let name: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let sent = Sent { name: name.clone(), bytes: content.len() as u64 };
    let subject = file_subject(UploadKind::File, sent.bytes, &digest);
    let to = host.clone();
    let sending = async move {
        let send = move |client: &mut Client| match client.files()?.iter().any(|file| file.name == name) {
            true => Ok(()),
            false => client.upload(UploadKind::File, &content, |_| {}),
        };
        answer_of(&to, send).await
    };
    recorded(app, &peer, &host, ("upload", &subject), sending).await?;
    Ok(Json(sent))
}

#[utoipa::path(post, path = "/api/v1/hosts/{host}/files/{file}/remove",
    params(("host" = String, Path), ("file" = String, Path, description = "Its name")),
    responses((status = 200, body = Done), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody), (status = 503, body = ErrorBody)))]
/// Free the memory of a file that was sent and that no guest needs (role operate)
pub(super) async fn remove(
    State(app): State<App>,
    Extension(peer): Extension<Peer>,
    Path((host, file)): Path<(String, String)>,
) -> Result<Json<Done>, Refused> {
    let body = RequestBody::FileRemove { name: file.clone() };
    done(app, peer, &host, "file-remove", file, body).await
}

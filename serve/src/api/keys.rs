// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys that operate a host.

use axum::extract::{Path, State};
use axum::{Extension, Json};
use seal::PublicKey;
use serde::Serialize;
use utoipa::ToSchema;
use wire::{ControlKey, RequestBody, Role};

use super::orders::{Done, done};
use super::reads::Answer;
use super::{App, ErrorBody, Refused};
use crate::access::Peer;

/// A key that operates a host.
#[derive(Serialize, ToSchema)]
pub struct Key {
    /// Its name in host.toml.
    pub name: String,
    /// The public key: `ed25519:…`.
    pub key: String,
    /// Its role; `null`: it is revoked.
    pub role: Option<Role>,
    /// Sessions that it has open.
    pub sessions: u32,
}

impl From<ControlKey> for Key {
    fn from(ControlKey { name, key, role, sessions }: ControlKey) -> Self {
        Self { name, key: PublicKey::from_bytes(key).to_string(), role, sessions }
    }
}

#[utoipa::path(get, path = "/api/v1/hosts/{host}/keys", params(("host" = String, Path)),
    responses((status = 200, body = Vec<Key>), (status = 404, body = ErrorBody), (status = 503, body = ErrorBody)))]
/// The keys that operate a host, and their roles; none: its requests are not signed
pub(super) async fn list(State(app): State<App>, Path(name): Path<String>) -> Answer<Vec<Key>> {
    let keys = app.host(&name)?.ask(|client| client.control_keys()).await?;
    Ok(Json(keys.into_iter().map(Key::from).collect()))
}

#[utoipa::path(post, path = "/api/v1/hosts/{host}/keys/{key}/revoke",
    params(("host" = String, Path), ("key" = String, Path, description = "Its name")),
    responses((status = 200, body = Done), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody), (status = 503, body = ErrorBody)))]
/// Revoke a key's role until the machine is reset: its sessions end (role update)
pub(super) async fn revoke(
    State(app): State<App>,
    Extension(peer): Extension<Peer>,
    Path((host, key)): Path<(String, String)>,
) -> Result<Json<Done>, Refused> {
    let body = RequestBody::RevokeControlKey { name: key.clone() };
    done(app, peer, &host, "key-revoke", key, body).await
}

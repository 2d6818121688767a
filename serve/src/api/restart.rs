// SPDX-License-Identifier: MIT OR Apache-2.0
//! The restart of a host without firmware, and the confirmation of an update.

use anyhow::{Result, bail};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::{Extension, Json};
use baton::client::{Client, Unclear};
use baton::commands::shipment;
use serde::Deserialize;
use utoipa::IntoParams;
use wire::{ReplyBody, RequestBody, RestartReport};

use super::extract::Asked;
use super::orders::{Done, answer_of, done, recorded};
use super::update::{by, file};
use super::{App, ErrorBody, Refused};
use crate::access::Peer;
use crate::ending::Stage;
use crate::updates::{self, By};

/// The restart that a client asks for.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct How {
    /// The image: the one in the host's bundle [default], or an image or a bundle in the request's body.
    #[serde(default = "bundle")]
    #[param(default = "bundle")]
    pub by: By,
    /// Go to an image of a lower security version, too, if the host's policy permits that.
    #[serde(default)]
    pub allow_downgrade: bool,
}

fn bundle() -> By {
    By::Bundle
}

#[utoipa::path(post, path = "/api/v1/hosts/{host}/restart", params(("host" = String, Path), How),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, body = RestartReport, description = "The new image's report, as `baton restart --json`"),
        (status = 400, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody), (status = 503, body = ErrorBody)))]
/// Replace a host's image without firmware: its guests end, and start again (role update)
pub(super) async fn restart(
    State(app): State<App>,
    Extension(peer): Extension<Peer>,
    Path(name): Path<String>,
    Asked(how): Asked<How>,
    body: Body,
) -> Result<Json<RestartReport>, Refused> {
    let host = app.host(&name)?.clone();
    host.reached()?;
    if how.by == By::Previous {
        return Err(Refused::invalid("a restart is by bundle, image or uploaded-bundle; an update by previous".into()));
    }
    let file = file(body, how.by).await?;
    if app.ending.has_come(Stage::Closing) {
        return Err(Refused::ending());
    }
    if let Some(id) = host.shared.updates().under_way().map(|update| update.id) {
        return Err(Refused::conflict(format!("update {id} of {name} is under way; wait for its end")));
    }
    let to = host.clone();
    let restarts = async move { answer_of(&to, move |client| perform(client, file, how)).await };
    recorded(app, &peer, &host, ("restart", by(how.by)), restarts).await.map(Json)
}

/// Restarts the host: sends the file, if there is one, and has the host switch.
fn perform(client: &mut Client, file: Vec<u8>, How { by, allow_downgrade }: How) -> Result<RestartReport> {
    let is_uploaded = by != By::Bundle;
    if is_uploaded {
        updates::send(client, file, by, allow_downgrade, |_| {})?;
    }
    if allow_downgrade {
        client.order(RequestBody::PermitDowngrade)?;
    }
    let body = if is_uploaded { RequestBody::RestartUploaded } else { RequestBody::Restart };
    match shipment::request(client, &body, is_uploaded) {
        Ok(ReplyBody::Restarted(report)) => Ok(report),
        Err(error) if error.is::<Unclear>() => {
            let generation = client.info()?.generation;
            Err(error.context(format!("the host runs generation {generation} now, and the answer was lost")))
        }
        Err(error) => Err(error),
        Ok(other) => bail!("the host answered something else ({other:?}); use service and host of one release"),
    }
}

#[utoipa::path(post, path = "/api/v1/hosts/{host}/confirm", params(("host" = String, Path)),
    responses((status = 200, body = Done), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody), (status = 503, body = ErrorBody)))]
/// Confirm an update with `confirm_within`: the image that runs is to stay (role update)
pub(super) async fn confirm(
    State(app): State<App>,
    Extension(peer): Extension<Peer>,
    Path(host): Path<String>,
) -> Result<Json<Done>, Refused> {
    done(app, peer, &host, "confirm", String::new(), RequestBody::Confirm).await
}

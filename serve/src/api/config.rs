// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host's configuration as it is now, changes since its start included.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use baton::config::show::host_toml;

use super::reads::Answer;
use super::{App, ErrorBody, Refused};

#[utoipa::path(get, path = "/api/v1/hosts/{host}/config", params(("host" = String, Path)),
    responses((status = 200, body = Object, description = "The sections and keys of a host.toml"),
        (status = 404, body = ErrorBody), (status = 503, body = ErrorBody)))]
/// A host's configuration with the keys of a host.toml; files are named as the host has them
pub(super) async fn config(State(app): State<App>, Path(name): Path<String>) -> Answer<toml::Table> {
    let table = text(&app, &name).await?.parse();
    table.map(Json).map_err(|error| Refused::failed(format!("the configuration cannot be read: {error}")))
}

#[utoipa::path(get, path = "/api/v1/hosts/{host}/config.toml", params(("host" = String, Path)),
    responses((status = 200, body = String, content_type = "application/toml"), (status = 404, body = ErrorBody),
        (status = 503, body = ErrorBody)))]
/// The same as a host.toml, as `baton config show` prints it
pub(super) async fn config_toml(State(app): State<App>, Path(name): Path<String>) -> Result<Response, Refused> {
    Ok(([(CONTENT_TYPE, "application/toml")], text(&app, &name).await?).into_response())
}

async fn text(app: &App, name: &str) -> Result<String, Refused> {
    Ok(app.host(name)?.ask(|client| Ok(host_toml(&client.config()?))).await?)
}

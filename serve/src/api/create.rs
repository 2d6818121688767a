// SPDX-License-Identifier: MIT OR Apache-2.0
//! New guests, from files that the host has.
//!
//! A guest is described by the keys of a `[[guest]]` in host.toml, and checked as that is. There a file is a path that
//! is read; here it is a name on the host, and no path of the service's machine may be read. So the check gets empty
//! files of the right lengths in a folder of their own, and their places in the manifest get the names afterwards.

use std::fs::File;
use std::path::Path;

use anyhow::{Context as _, Result as Anyhow};
use axum::extract::{Path as PathOf, State};
use axum::{Extension, Json};
use baton::bundle::addition;
use baton::client::Client;
use baton::config::{Config, ConfigError};
use baton::suggest::did_you_mean;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tempfile::TempDir;
use utoipa::{IntoParams, ToSchema};
use wire::{FileInfo, MAX_PAGE_BYTES, RequestBody};

use super::extract::{Asked, Described};
use super::orders::{Done, carried_out};
use super::{App, ErrorBody, Refused};
use crate::access::Peer;

/// A new guest: the keys of a `[[guest]]` in host.toml, tables and lists included, but for `drivers`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct NewGuest {
    /// Its name.
    pub name: String,
    /// The file with its kernel, by its name on the host.
    pub kernel: String,
    /// The file with its initial RAM disk, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initrd: Option<String>,
    /// Files handed over as modules, likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<String>,
    /// Its memory, as `512MiB` or `2GiB`.
    pub memory: String,
    /// All other keys.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// The start of a new guest.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Leave it stopped.
    #[serde(default)]
    pub no_start: bool,
}

#[utoipa::path(post, path = "/api/v1/hosts/{host}/guests", params(("host" = String, Path), Start),
    request_body = NewGuest,
    responses((status = 200, body = Done), (status = 400, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 409, body = ErrorBody), (status = 422, body = ErrorBody),
        (status = 503, body = ErrorBody)))]
/// Add a guest to a host and start it; the host has its files (role operate)
pub(super) async fn create(
    State(app): State<App>,
    Extension(peer): Extension<Peer>,
    PathOf(host): PathOf<String>,
    Asked(Start { no_start }): Asked<Start>,
    Described(guest): Described<NewGuest>,
) -> Result<Json<Done>, Refused> {
    let (beside, files) = app.host(&host)?.ask(|client| Ok((client.config()?, client.files()?))).await?;
    let manifest = manifest(&guest, &files, |path, text| Config::parse_beside(path, text, &beside))?;
    let (done, name) = ("guest-create", guest.name);
    let answer = Done { done: done.to_owned(), subject: name.clone() };
    let job = {
        let name = name.clone();
        move |client: &mut Client| add(client, manifest, name, no_start)
    };
    carried_out(app, peer, &host, done, name, job).await?;
    Ok(Json(answer))
}

fn add(client: &mut Client, manifest: Vec<u8>, name: String, no_start: bool) -> Anyhow<()> {
    client.order(RequestBody::VmCreate { manifest })?;
    if no_start {
        return Ok(());
    }
    let is_there = format!("{name} is created, and not started");
    client.order(RequestBody::VmStart { name }).context(is_there)
}

/// Returns the manifest of a guest whose files the host has; `parse` checks a host.toml beside the host's guests.
fn manifest(
    guest: &NewGuest,
    files: &[FileInfo],
    parse: impl FnOnce(&Path, &str) -> Result<Config, ConfigError>,
) -> Result<Vec<u8>, Refused> {
    if guest.more.contains_key("drivers") {
        let hint = "make its initial RAM disk, send that, and name it as initrd; or use `baton vm create`";
        return Err(Refused::invalid(format!("drivers is a folder that the service does not read; {hint}")));
    }
    let failed = |error: anyhow::Error| Refused::failed(format!("{}: {error:#}", guest.name));
    let stand_ins = StandIns::of(guest, files)?;
    let text = host_toml(&stand_ins.named_by(guest))?;
    let path = stand_ins.folder.path().join("host.toml");
    let config = parse(&path, &text).map_err(|error| mistakes(&error))?;
    let checked = config.guests.first().ok_or_else(|| Refused::invalid("there is no guest in it".to_owned()))?;
    // Files are read here, and their contents are not used.
    stand_ins.set_lengths(|_| 0).map_err(failed)?;
    let (mut manifest, _) = addition(checked, &config.networks).map_err(failed)?;
    for added in &mut manifest.guests {
        added.kernel = guest.kernel.clone();
        added.initrd = guest.initrd.clone();
        added.modules = guest.modules.clone();
    }
    let (content, name) = (manifest.to_content(), &guest.name);
    match content.len() {
        ..=MAX_PAGE_BYTES => Ok(content),
        bytes => {
            Err(Refused::invalid(format!("the description of {name} has {bytes} bytes; {MAX_PAGE_BYTES} are possible")))
        }
    }
}

/// Files without content, each in place of one of the host.
struct StandIns {
    folder: TempDir,
    /// The length of each; its number is its name.
    lengths: Vec<u64>,
}

impl StandIns {
    /// Makes those of a guest's kernel, initial RAM disk and modules.
    fn of(guest: &NewGuest, files: &[FileInfo]) -> Result<Self, Refused> {
        let names = [&guest.kernel].into_iter().chain(&guest.initrd).chain(&guest.modules);
        let lengths = names.map(|name| length(name, files)).collect::<Result<_, _>>()?;
        let failed = |error: anyhow::Error| Refused::failed(format!("{error:#}"));
        let folder = tempfile::tempdir().context("there is no folder for the check").map_err(failed)?;
        let made = Self { folder, lengths };
        made.set_lengths(|bytes| bytes).map_err(failed)?;
        Ok(made)
    }

    fn set_lengths(&self, of: impl Fn(u64) -> u64) -> Anyhow<()> {
        self.lengths.iter().enumerate().try_for_each(|(index, &bytes)| {
            let file = File::create(self.folder.path().join(index.to_string()))?;
            file.set_len(of(bytes)).context("the check needs a file of that length")
        })
    }

    /// Returns the guest with the names of these files.
    fn named_by(&self, guest: &NewGuest) -> NewGuest {
        let mut names = (0..self.lengths.len()).map(|index| index.to_string());
        NewGuest {
            kernel: names.next().unwrap_or_default(),
            initrd: guest.initrd.as_ref().and_then(|_| names.next()),
            modules: names.collect(),
            ..guest.clone()
        }
    }
}

/// Returns the length of a file that the host has.
fn length(name: &str, files: &[FileInfo]) -> Result<u64, Refused> {
    if let Some(file) = files.iter().find(|file| file.name == name) {
        return Ok(file.bytes);
    }
    let known = did_you_mean(name, files.iter().map(|file| file.name.as_str()));
    let hint = if known.is_empty() { "; send it first (POST …/files)".to_owned() } else { known };
    Err(Refused::not_found(format!("the host has no file {name:?}{hint}")))
}

/// Returns a host.toml with this guest alone.
fn host_toml(guest: &NewGuest) -> Result<String, Refused> {
    let table = toml::Table::try_from(guest).map(|guest| {
        let list = vec![toml::Value::Table(guest)];
        toml::Table::from_iter([("guest".to_owned(), list.into())]).to_string()
    });
    table.map_err(|error| Refused::invalid(format!("guest {}: {error}; leave out keys without a value", guest.name)))
}

fn mistakes(error: &ConfigError) -> Refused {
    let messages: Vec<&str> = error.mistakes.iter().map(|mistake| mistake.message.as_str()).collect();
    Refused::invalid(messages.join("\n"))
}

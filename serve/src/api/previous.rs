// SPDX-License-Identifier: MIT OR Apache-2.0
//! The remains of the host before this one: an epitaph after a panic, its log after a restart without firmware.

use anyhow::Result;
use axum::Json;
use axum::extract::{Path, State};
use baton::client::{Client, Previous};
use serde::Serialize;
use utoipa::ToSchema;
use wire::LogRecord;

use super::reads::Answer;
use super::{App, ErrorBody};

/// The remains of the host before this one; both are empty if it left nothing in memory.
#[derive(Serialize, ToSchema)]
pub struct Remains {
    /// Its epitaph, line by line.
    pub lines: Vec<String>,
    /// Its log, if this image replaced it.
    pub log: Vec<LogRecord<'static>>,
}

#[utoipa::path(get, path = "/api/v1/hosts/{host}/log/previous", params(("host" = String, Path)),
    responses((status = 200, body = Remains), (status = 404, body = ErrorBody), (status = 503, body = ErrorBody)))]
/// The epitaph and the log of the host before this one, as `baton log --previous`
pub(super) async fn previous(State(app): State<App>, Path(name): Path<String>) -> Answer<Remains> {
    Ok(Json(app.host(&name)?.ask(remains).await?))
}

fn remains(client: &mut Client) -> Result<Remains> {
    let Previous { lines, log_until_ns } = client.previous()?;
    let log = log_until_ns.map(|until_ns| log(client, until_ns)).transpose()?.unwrap_or_default();
    Ok(Remains { lines, log })
}

/// Returns the log up to the first record that is not older than this.
fn log(client: &mut Client, until_ns: u64) -> Result<Vec<LogRecord<'static>>> {
    let (mut all, mut place) = (Vec::new(), 0);
    loop {
        let (records, next) = client.log(place)?;
        let (before, count) = (all.len(), records.len());
        all.extend(records.into_iter().take_while(|record| record.time_ns < until_ns));
        let is_end = count == 0 || all.len() - before < count;
        if is_end || next <= place {
            return Ok(all);
        }
        place = next;
    }
}

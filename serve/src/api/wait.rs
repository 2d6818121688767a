// SPDX-License-Identifier: MIT OR Apache-2.0
//! The wait for a guest's end. While the guest runs it asks the host nothing: the readings that come anyway wake it.

use std::pin::pin;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use futures_util::future::{Either, select};
use serde::Deserialize;
use tokio::time::timeout;
use utoipa::IntoParams;
use wire::VmInfo;

use super::extract::Asked;
use super::reads::Answer;
use super::shutdown::{MAX_TIMEOUT, named};
use super::{App, ErrorBody, Refused};
use crate::ending::Stage;
use crate::host::Host;

/// The wait for a client that states none, in seconds: proxies often end a request that takes longer.
const TIMEOUT: u32 = 60;

/// The longest wait.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct Longest {
    /// Seconds, 1 to 3,600, after which the wait is over if the guest has not ended [default: 60].
    pub timeout: Option<u32>,
}

#[utoipa::path(get, path = "/api/v1/hosts/{host}/guests/{guest}/wait",
    params(("host" = String, Path), ("guest" = String, Path), Longest),
    responses((status = 200, body = VmInfo), (status = 400, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 408, body = ErrorBody, description = "The guest has not ended within the time"),
        (status = 503, body = ErrorBody)))]
/// Wait until a guest has stopped or failed
pub(super) async fn wait(
    State(app): State<App>,
    Path((host, guest)): Path<(String, String)>,
    Asked(Longest { timeout: seconds }): Asked<Longest>,
) -> Answer<VmInfo> {
    let seconds = seconds.unwrap_or(TIMEOUT);
    if !(1..=MAX_TIMEOUT).contains(&seconds) {
        return Err(Refused::invalid(format!("timeout is 1 to {MAX_TIMEOUT} seconds")));
    }
    let (host, mut ending) = (app.host(&host)?.clone(), app.ending.clone());
    let ended = pin!(timeout(Duration::from_secs(seconds.into()), end_of(&host, &guest)));
    match select(ended, pin!(ending.comes(Stage::Closing))).await {
        Either::Left((Ok(ended), _)) => ended.map(Json),
        Either::Left((Err(_), _)) => Err(Refused::timed_out(format!(
            "guest {guest} has not ended within {seconds} s; wait again, or send POST …/shutdown, which asks it to end"
        ))),
        Either::Right(_) => Err(Refused::ending()),
    }
}

/// Waits for a guest's end.
async fn end_of(host: &Host, name: &str) -> Result<VmInfo, Refused> {
    let mut readings = host.readings();
    let last = host.reached()?;
    if last.guests.iter().all(|vm| vm.name != name || vm.state.has_ended()) {
        // The last reading may be older than the order by which this client has created or started the guest.
        host.read_soon();
    }
    loop {
        let reading = readings.next().await?;
        let vm = named(&reading.guests, &host.name, name)?;
        if vm.state.has_ended() {
            return Ok(vm.clone());
        }
    }
}

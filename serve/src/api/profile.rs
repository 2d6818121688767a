// SPDX-License-Identifier: MIT OR Apache-2.0
//! A profile of the hypervisor itself. The service has no symbols: frames are addresses in the image whose build the
//! answer names.

use std::time::{Duration, Instant};

use axum::extract::{Path, State};
use axum::{Extension, Json};
use baton::client::some_number;
use baton::profile::Stacks;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;
use utoipa::{IntoParams, ToSchema};
use wire::{MAX_PROFILE_WORDS, ProfilePage, ReplyBody, RequestBody};

use super::extract::Asked;
use super::figures::{length, unexpected};
use super::orders::recorded;
use super::{App, ErrorBody, Refused};
use crate::access::Peer;
use crate::host::{Failure, Host};

/// The usual length, in seconds, and the usual number of samples of each CPU in a second.
const USUAL_SECONDS: f64 = 5.0;
const USUAL_HZ: u32 = 99;
/// The most samples of each CPU in a second.
const MAX_HZ: u32 = 1000;
/// The interval between two requests for samples: the host keeps some seconds' worth.
const INTERVAL: Duration = Duration::from_millis(100);
/// The most words of samples that a profile has; the profile ends with them.
const MAX_WORDS: usize = 16 << 20;

/// Length and frequency of a profile.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct How {
    /// Seconds for which to sample: more than 0, 60 at most [default: 5].
    pub seconds: Option<f64>,
    /// Samples of each CPU in a second: 1 to 1,000 [default: 99].
    pub hz: Option<u32>,
}

/// A profile.
#[derive(Serialize, ToSchema)]
pub struct Profile {
    /// The image's build ID.
    pub build: String,
    /// The time between two samples of a CPU, in microseconds.
    pub period_us: u32,
    /// Polls of all CPUs.
    pub asked: u64,
    /// Samples.
    pub samples: u64,
    /// Samples that were lost.
    pub lost: u64,
    /// The reason for which it ended early, if it did.
    pub cut_short: Option<String>,
    /// The stacks: `frames`, the outermost first, and `samples`. A frame of the hypervisor is an address.
    #[schema(value_type = Vec<Object>)]
    pub stacks: Stacks,
}

#[utoipa::path(post, path = "/api/v1/hosts/{host}/perf", params(("host" = String, Path), How),
    responses((status = 200, body = Profile), (status = 400, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 409, body = ErrorBody), (status = 503, body = ErrorBody)))]
/// Take a profile of the hypervisor; its frames are addresses (role operate)
pub(super) async fn profile(
    State(app): State<App>,
    Extension(peer): Extension<Peer>,
    Path(host): Path<String>,
    Asked(How { seconds, hz }): Asked<How>,
) -> Result<Json<Profile>, Refused> {
    let (time, hz) = (length(seconds, USUAL_SECONDS)?, hz.unwrap_or(USUAL_HZ));
    if !(1..=MAX_HZ).contains(&hz) {
        return Err(Refused::invalid(format!("hz is 1 to {MAX_HZ}")));
    }
    let host = app.host(&host)?.clone();
    let of = host.clone();
    recorded(app, &peer, &host, ("profile", ""), async move { taken(&of, hz, time).await }).await.map(Json)
}

/// Takes a profile; its samples so far are reported if the host ends it early.
async fn taken(host: &Host, hz: u32, time: Duration) -> Result<Profile, Refused> {
    let guests: Vec<String> = host.ask(|client| client.vms()).await?.into_iter().map(|vm| vm.name).collect();
    let by = some_number();
    let mut head = page(host, RequestBody::ProfileBegin { by, hz }).await?;
    let mut words = std::mem::take(&mut head.samples);
    let gathered = gather(host, by, time, (&mut head, &mut words)).await;
    let cut_short = match gathered {
        Ok(()) => None,
        Err(refused) if refused.body.code.is_some() => Some(refused.body.message),
        Err(refused) => return Err(refused),
    };
    let guest = |number: u32| guests.get(number as usize).cloned().unwrap_or_else(|| number.to_string());
    let stacks = Stacks::of(&words, head.code, |address| vec![format!("{address:#x}")], guest);
    let ProfilePage { build, period_us, asked, lost, .. } = head;
    let build = build.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Profile { build, period_us, asked, samples: stacks.total(), lost, cut_short, stacks })
}

/// Gathers samples for this time, and then those that are left, which makes room for the next profile.
async fn gather(
    host: &Host,
    by: u32,
    time: Duration,
    (head, words): (&mut ProfilePage, &mut Vec<u32>),
) -> Result<(), Refused> {
    let end = Instant::now() + time;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let is_end = left.is_zero() || words.len() >= MAX_WORDS;
        let mut next = page(host, RequestBody::ProfileRead { by, is_end }).await?;
        let count = next.samples.len();
        words.append(&mut next.samples);
        *head = next;
        if is_end && count == 0 {
            return Ok(());
        }
        // Samples are not cut in two, so a page that is full may have some room left.
        if !is_end && count < MAX_PROFILE_WORDS / 2 {
            sleep(left.min(INTERVAL)).await;
        }
    }
}

async fn page(host: &Host, question: RequestBody) -> Result<ProfilePage, Refused> {
    match host.ask(move |client| client.request(question)).await? {
        ReplyBody::Profile(page) => Ok(page),
        other => Err(Failure::Host(unexpected(&other)).into()),
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests that change nothing. Most are answered from the host's last report.

use axum::extract::{Path, Query, State};
use axum::{Extension, Json};
use baton::timeline::Run;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use wire::{
    CpuInfo, DiskInfo, Event, HostInfo, IommuUnit, LogRecord, NetPort, PciFunction, PciSurvey, VmInfo, Vulnerability,
};

use super::history::MAX_RECORDS;
use super::{App, ErrorBody, Refused};
use crate::access::{Peer, Role};
use crate::history::Kind;
use crate::host::{CpuShares, Kept, Status};
use crate::updates::Update;

/// The answer to a question.
pub(super) type Answer<T> = Result<Json<T>, Refused>;

/// The client, as the service knows it.
#[derive(Serialize, ToSchema)]
pub struct Whoami {
    /// Its name in the audit log.
    pub who: String,
    /// Its role.
    pub role: Option<Role>,
}

/// PCI functions of a host.
#[derive(Serialize, ToSchema)]
pub struct Pci {
    /// Progress of their discovery.
    pub survey: PciSurvey,
    /// The functions that were found.
    pub functions: Vec<PciFunction>,
}

/// A record of a log, with the number that the service has given it.
#[derive(Serialize, ToSchema)]
pub struct KeptRecord {
    /// Rises by one with each record of this host since the history began.
    pub id: u64,
    /// The time at which it was made, by the service's clock: milliseconds since 1970.
    pub at_ms: u64,
    /// Records before it that were lost in the host.
    pub lost: u64,
    /// The record.
    #[serde(flatten)]
    pub record: LogRecord<'static>,
}

/// An event, with the number that the service has given it.
#[derive(Serialize, ToSchema)]
pub struct KeptEvent {
    /// Rises by one with each event of this host since the history began.
    pub id: u64,
    /// The time at which it happened, by the service's clock: milliseconds since 1970.
    pub at_ms: u64,
    /// Events before it that were lost in the host.
    pub lost: u64,
    /// The event.
    #[serde(flatten)]
    pub record: Event,
}

/// A CPU of a host.
#[derive(Serialize, ToSchema)]
pub struct Cpu {
    /// The CPU.
    #[serde(flatten)]
    pub info: CpuInfo,
    /// Shares of its time between the last two readings of the host; `null` while there were none.
    pub shares: Option<CpuShares>,
}

/// A part of a list of records.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// The `id` of the first record wanted [default: the oldest].
    #[serde(default)]
    pub from: u64,
    /// The most records wanted: the last ones of those that there are; with `since` the first ones, 4,000 at most.
    #[serde(default = "all")]
    pub limit: usize,
    /// From the history: those from this time on, in milliseconds since 1970.
    pub since: Option<u64>,
    /// Up to this time, likewise [default: now]; only with `since`.
    pub until: Option<u64>,
}

fn all() -> usize {
    usize::MAX
}

#[utoipa::path(get, path = "/api/v1/whoami", responses((status = 200, body = Whoami)))]
/// The client itself
pub(super) async fn whoami(Extension(peer): Extension<Peer>) -> Json<Whoami> {
    Json(Whoami { who: peer.who, role: peer.role })
}

#[utoipa::path(get, path = "/api/v1/hosts", responses((status = 200, body = Vec<Status>)))]
/// All hosts
pub(super) async fn hosts(State(app): State<App>) -> Json<Vec<Status>> {
    Json(app.hosts.values().map(|host| host.shared.status()).collect())
}

#[utoipa::path(get, path = "/api/v1/hosts/{host}", params(("host" = String, Path)),
    responses((status = 200, body = Status), (status = 404, body = ErrorBody)))]
/// One host; also one that is unreachable
pub(super) async fn host(State(app): State<App>, Path(name): Path<String>) -> Answer<Status> {
    Ok(Json(app.host(&name)?.shared.status()))
}

#[utoipa::path(get, path = "/api/v1/hosts/{host}/info", params(("host" = String, Path)),
    responses((status = 200, body = HostInfo), (status = 503, body = ErrorBody)))]
/// A host's description
pub(super) async fn info(State(app): State<App>, Path(name): Path<String>) -> Answer<HostInfo> {
    let info = app.host(&name)?.reached()?.info.clone();
    info.map(Json).ok_or_else(|| Refused::failed("the host was not read yet".to_owned()))
}

#[utoipa::path(get, path = "/api/v1/hosts/{host}/vulnerabilities", params(("host" = String, Path)),
    responses((status = 200, body = Vec<Vulnerability>), (status = 503, body = ErrorBody)))]
/// A host's exposure to speculation vulnerabilities
pub(super) async fn vulnerabilities(State(app): State<App>, Path(name): Path<String>) -> Answer<Vec<Vulnerability>> {
    Ok(Json(app.host(&name)?.reached()?.vulnerabilities.clone()))
}

#[utoipa::path(get, path = "/api/v1/hosts/{host}/guests", params(("host" = String, Path)),
    responses((status = 200, body = Vec<VmInfo>), (status = 503, body = ErrorBody)))]
/// A host's guests
pub(super) async fn guests(State(app): State<App>, Path(name): Path<String>) -> Answer<Vec<VmInfo>> {
    Ok(Json(app.host(&name)?.reached()?.guests.clone()))
}

#[utoipa::path(get, path = "/api/v1/hosts/{host}/cpus", params(("host" = String, Path)),
    responses((status = 200, body = Vec<Cpu>), (status = 503, body = ErrorBody)))]
/// A host's CPUs
pub(super) async fn cpus(State(app): State<App>, Path(name): Path<String>) -> Answer<Vec<Cpu>> {
    let snapshot = app.host(&name)?.reached()?;
    let shares = |info: &CpuInfo| snapshot.cpu_times.get(&info.index)?.last;
    Ok(Json(snapshot.cpus.iter().map(|info| Cpu { info: info.clone(), shares: shares(info) }).collect()))
}

#[utoipa::path(get, path = "/api/v1/hosts/{host}/networks", params(("host" = String, Path)),
    responses((status = 200, body = Vec<NetPort>), (status = 503, body = ErrorBody)))]
/// The ports of a host's networks
pub(super) async fn networks(State(app): State<App>, Path(name): Path<String>) -> Answer<Vec<NetPort>> {
    Ok(Json(app.host(&name)?.reached()?.ports.clone()))
}

#[utoipa::path(get, path = "/api/v1/hosts/{host}/disks", params(("host" = String, Path)),
    responses((status = 200, body = Vec<DiskInfo>), (status = 503, body = ErrorBody)))]
/// The disks of a host's guests with their storage in other guests
pub(super) async fn disks(State(app): State<App>, Path(name): Path<String>) -> Answer<Vec<DiskInfo>> {
    Ok(Json(app.host(&name)?.reached()?.disks.clone()))
}

#[utoipa::path(get, path = "/api/v1/hosts/{host}/iommus", params(("host" = String, Path)),
    responses((status = 200, body = Vec<IommuUnit>), (status = 503, body = ErrorBody)))]
/// A host's IOMMUs
pub(super) async fn iommus(State(app): State<App>, Path(name): Path<String>) -> Answer<Vec<IommuUnit>> {
    Ok(Json(app.host(&name)?.reached()?.iommus.clone()))
}

#[utoipa::path(get, path = "/api/v1/hosts/{host}/pci", params(("host" = String, Path)),
    responses((status = 200, body = Pci), (status = 503, body = ErrorBody)))]
/// A host's PCI functions
pub(super) async fn pci(State(app): State<App>, Path(name): Path<String>) -> Answer<Pci> {
    let found = app.host(&name)?.pci().await?;
    Ok(Json(Pci { survey: found.0, functions: found.1.clone() }))
}

#[utoipa::path(get, path = "/api/v1/hosts/{host}/timeline", params(("host" = String, Path)),
    responses((status = 200, body = Vec<Run>), (status = 503, body = ErrorBody)))]
/// A host's boot, restarts and updates, oldest first: tracks of spans in microseconds, as `baton timeline --json`
pub(super) async fn timeline(State(app): State<App>, Path(name): Path<String>) -> Answer<Vec<Run>> {
    Ok(Json(app.host(&name)?.runs().await?.to_vec()))
}

#[utoipa::path(get, path = "/api/v1/hosts/{host}/log", params(("host" = String, Path), Page),
    responses((status = 200, body = Vec<KeptRecord>)))]
/// The last records of a host's log, also while it is unreachable
pub(super) async fn log(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(page): Query<Page>,
) -> Answer<Vec<KeptRecord>> {
    let kept = match past(&app, Kind::Log, &name, &page).await? {
        Some(kept) => kept,
        None => part(&app.host(&name)?.shared.records().log, &page),
    };
    let record = |Kept { id, at_ms, lost, record }| KeptRecord { id, at_ms, lost, record };
    Ok(Json(kept.into_iter().map(record).collect()))
}

#[utoipa::path(get, path = "/api/v1/hosts/{host}/events", params(("host" = String, Path), Page),
    responses((status = 200, body = Vec<KeptEvent>)))]
/// A host's last events, also while it is unreachable
pub(super) async fn events(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(page): Query<Page>,
) -> Answer<Vec<KeptEvent>> {
    let kept = match past(&app, Kind::Event, &name, &page).await? {
        Some(kept) => kept,
        None => part(&app.host(&name)?.shared.records().events, &page),
    };
    let event = |Kept { id, at_ms, lost, record }| KeptEvent { id, at_ms, lost, record };
    Ok(Json(kept.into_iter().map(event).collect()))
}

/// Returns the records that a page asks the history for; `None` if it states no time.
async fn past<T: DeserializeOwned + Send + 'static>(
    app: &App,
    kind: Kind,
    name: &str,
    page: &Page,
) -> Result<Option<Vec<Kept<T>>>, Refused> {
    let host = app.host(name)?.name.to_string();
    let Some(since) = page.since else {
        let message = "`until` is of the history, which `since` begins; state both";
        return if page.until.is_none() { Ok(None) } else { Err(Refused::invalid(message.to_owned())) };
    };
    let limit = page.limit.min(MAX_RECORDS);
    let found = app.history.read::<Kept<T>>(kind, (host, since, page.until.unwrap_or(u64::MAX), limit)).await?;
    Ok(Some(found.into_iter().map(|(_, kept)| kept).filter(|kept| kept.id >= page.from).collect()))
}

/// Returns the records that a page asks for.
fn part<T: Clone>(records: &std::collections::VecDeque<Kept<T>>, page: &Page) -> Vec<Kept<T>> {
    let wanted = records.iter().filter(|record| record.id >= page.from);
    let skipped = wanted.clone().count().saturating_sub(page.limit);
    wanted.skip(skipped).cloned().collect()
}

#[utoipa::path(get, path = "/api/v1/hosts/{host}/updates", params(("host" = String, Path)),
    responses((status = 200, body = Vec<Update>)))]
/// Updates that clients of this service have asked for, the last one with its progress
pub(super) async fn updates(State(app): State<App>, Path(name): Path<String>) -> Answer<Vec<Update>> {
    Ok(Json(app.host(&name)?.shared.updates().asked.iter().cloned().collect()))
}

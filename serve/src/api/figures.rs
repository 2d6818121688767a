// SPDX-License-Identifier: MIT OR Apache-2.0
//! The use of vCPUs and CPUs in a span of time, from two samples.
//!
//! A sample is a question that is repeated until the CPU has taken it. Each repetition is a job of its own, and so is
//! the next sample: between them the line is free for others.

use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::{Path, State};
use baton::commands::{perf, stat};
use serde::Deserialize;
use tokio::time::sleep;
use utoipa::IntoParams;
use wire::{CpuPerf, CpuState, ReplyBody, RequestBody, VcpuPerf};

use super::extract::Asked;
use super::reads::Answer;
use super::shutdown::vm;
use super::{App, ErrorBody, Refused};
use crate::host::{Failure, Host};

/// The longest span, in seconds.
pub(super) const MAX_SECONDS: f64 = 60.0;
/// The time within which a CPU has taken a sample, and the interval between two questions for it.
const SAMPLED: Duration = Duration::from_secs(20);
const AGAIN: Duration = Duration::from_millis(5);
/// The interval between questions about CPUs: a host ends counting five seconds after the last one.
const KEEP_COUNTING: Duration = Duration::from_secs(2);

/// The span of time that is measured.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// Its length in seconds, more than 0, 60 at most [default: 1].
    pub seconds: Option<f64>,
}

#[utoipa::path(get, path = "/api/v1/hosts/{host}/guests/{guest}/perf",
    params(("host" = String, Path), ("guest" = String, Path), Span),
    responses((status = 200, body = Vec<perf::Span>, description = "One for each vCPU, as `baton vm perf --json`"),
        (status = 400, body = ErrorBody), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody),
        (status = 503, body = ErrorBody)))]
/// The time, the exits and the performance counters of a guest's vCPUs in a span of time
pub(super) async fn guest(
    State(app): State<App>,
    Path((host, guest)): Path<(String, String)>,
    Asked(span): Asked<Span>,
) -> Answer<Vec<perf::Span>> {
    let time = length(span.seconds, 1.0)?;
    let host = app.host(&host)?.clone();
    let vcpus = vm(&host, &guest).await?.vcpus;
    let before = of_vcpus(&host, &guest, vcpus).await?;
    sleep(time).await;
    let after = of_vcpus(&host, &guest, vcpus).await?;
    let spans = before.iter().zip(&after).zip(0..).map(|((before, after), vcpu)| perf::between(vcpu, before, after));
    Ok(Json(spans.collect()))
}

#[utoipa::path(get, path = "/api/v1/hosts/{host}/perf/stat", params(("host" = String, Path), Span),
    responses((status = 200, body = Vec<stat::Span>, description = "One for each CPU, as `baton perf stat --json`"),
        (status = 400, body = ErrorBody), (status = 404, body = ErrorBody), (status = 502, body = ErrorBody),
        (status = 503, body = ErrorBody)))]
/// The use of a host's CPUs in a span of time: the host's own cycles, each guest's, and idle ones
pub(super) async fn host(
    State(app): State<App>,
    Path(host): Path<String>,
    Asked(span): Asked<Span>,
) -> Answer<Vec<stat::Span>> {
    let time = length(span.seconds, 1.0)?;
    let host = app.host(&host)?.clone();
    let (vms, cpus) = host.ask(|client| Ok((client.vms()?, client.cpus()?))).await?;
    let guests: Vec<String> = vms.into_iter().map(|vm| vm.name).collect();
    let online = cpus.iter().filter(|cpu| cpu.state == CpuState::Online);
    let cpus: Vec<u32> = online.map(|cpu| cpu.index).collect();
    let end = Instant::now() + time;
    let before = of_cpus(&host, &cpus).await?;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        sleep(left.min(KEEP_COUNTING)).await;
        let now = of_cpus(&host, &cpus).await?;
        let spans = cpus.iter().zip(before.iter().zip(&now)).map(|(&cpu, (b, a))| stat::between(cpu, &guests, b, a));
        // A CPU with reset counters need not be waited for.
        let spans = spans.collect::<anyhow::Result<Vec<_>>>().map_err(Failure::Host)?;
        if left <= KEEP_COUNTING {
            return Ok(Json(spans));
        }
    }
}

/// Returns a span's length.
pub(super) fn length(seconds: Option<f64>, usual: f64) -> Result<Duration, Refused> {
    let seconds = seconds.unwrap_or(usual);
    match seconds > 0.0 && seconds <= MAX_SECONDS {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err(Refused::invalid(format!("seconds is more than 0, and {MAX_SECONDS} at most"))),
    }
}

async fn of_vcpus(host: &Host, name: &str, vcpus: u32) -> Result<Vec<VcpuPerf>, Refused> {
    let mut all = Vec::new();
    for vcpu in 0..vcpus {
        let question = RequestBody::VmPerf { name: name.to_owned(), vcpu };
        let owner = format!("vCPU {vcpu} of {name}");
        let taken = sample(host, question, &owner, |reply| match reply {
            ReplyBody::Perf { asked_ns, latest } => Ok((asked_ns, latest.map(|latest| (latest.at_ns, *latest)))),
            other => Err(unexpected(&other)),
        });
        all.push(taken.await?);
    }
    Ok(all)
}

async fn of_cpus(host: &Host, cpus: &[u32]) -> Result<Vec<CpuPerf>, Refused> {
    let mut all = Vec::new();
    for &index in cpus {
        let owner = format!("CPU {index}");
        let taken = sample(host, RequestBody::CpuPerf { index }, &owner, |reply| match reply {
            ReplyBody::CpuPerf { asked_ns, latest } => Ok((asked_ns, latest.map(|latest| (latest.at_ns, latest)))),
            other => Err(unexpected(&other)),
        });
        all.push(taken.await?);
    }
    Ok(all)
}

/// Repeats a question until its figures are newer than the first one.
async fn sample<T>(
    host: &Host,
    question: RequestBody,
    owner: &str,
    read: impl Fn(ReplyBody) -> anyhow::Result<(u64, Option<(u64, T)>)>,
) -> Result<T, Refused> {
    let (mut since, end) = (None, Instant::now() + SAMPLED);
    loop {
        let body = question.clone();
        let reply = host.ask(move |client| client.request(body)).await?;
        let (asked_ns, latest) = read(reply).map_err(Failure::Host)?;
        let since = *since.get_or_insert(asked_ns);
        if let Some((_, figures)) = latest.filter(|(at_ns, _)| *at_ns >= since) {
            return Ok(figures);
        }
        if Instant::now() >= end {
            let reason = format!("no CPU has sampled {owner} for {SAMPLED:?}; `baton cpu list` shows where it is");
            return Err(Failure::Host(anyhow::Error::msg(reason)).into());
        }
        sleep(AGAIN).await;
    }
}

/// Returns the failure of a host that answers another question.
pub(super) fn unexpected(reply: &ReplyBody) -> anyhow::Error {
    anyhow::anyhow!("the host answered something else ({reply:?}); use service and host of one release")
}

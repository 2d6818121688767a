// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics of the past, and the state of the history.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use baton::suggest::did_you_mean;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{App, ErrorBody, Refused};
use crate::clock;
use crate::history::{HistoryError, HistoryHealth, Kind, METRICS, Sample};

/// The most records or samples of one answer; the next request begins behind the last one.
pub(super) const MAX_RECORDS: usize = 4000;
/// The time that is shown unless another is asked for.
const HOUR_MS: u64 = 3_600_000;

/// The metrics and the time that are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// `guests_cpu`, `guest_cpu`, `guest_wait`, `guest_exits`, `cpus_guests`, `cpus_host`, `cpus_idle`, `cpus_online`
    /// or `memory_free` [default: all].
    pub metric: Option<String>,
    /// From this time on, in milliseconds since 1970 [default: an hour ago].
    pub from: Option<u64>,
    /// Up to this time [default: now].
    pub to: Option<u64>,
}

/// Values of a metric.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Series {
    /// Its name.
    pub metric: String,
    /// The guest; empty for a metric of the host.
    pub of: String,
    /// Its values, oldest first.
    pub points: Vec<Point>,
}

/// A value at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub struct Point {
    /// Milliseconds since 1970.
    pub at_ms: u64,
    /// The mean since the sample before.
    pub value: f64,
}

/// The state of the service.
#[derive(Serialize, ToSchema)]
pub struct Health {
    /// The state of the history.
    pub history: HistoryHealth,
}

#[utoipa::path(get, path = "/api/v1/health", responses((status = 200, body = Health)))]
/// Whether the service keeps the history
pub(super) async fn health(State(app): State<App>) -> Json<Health> {
    Json(Health { history: app.history.health() })
}

#[utoipa::path(get, path = "/api/v1/hosts/{host}/history", params(("host" = String, Path), Wanted),
    responses((status = 200, body = Vec<Series>), (status = 400, body = ErrorBody), (status = 503, body = ErrorBody)))]
/// A host's metrics of the past, 4,000 samples at most; also while it is unreachable
pub(super) async fn history(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(wanted): Query<Wanted>,
) -> Result<Json<Vec<Series>>, Refused> {
    let host = app.host(&name)?.name.to_string();
    if let Some(metric) = wanted.metric.as_deref().filter(|metric| METRICS.iter().all(|(name, _)| name != metric)) {
        let hint = did_you_mean(metric, METRICS.iter().map(|(name, _)| *name));
        return Err(Refused::invalid(format!("there is no metric {metric:?}{hint}")));
    }
    let now_ms = clock::now_ms();
    let from = wanted.from.unwrap_or_else(|| now_ms.saturating_sub(HOUR_MS));
    let span = (host, from, wanted.to.unwrap_or(u64::MAX), MAX_RECORDS);
    let samples = app.history.read::<Sample>(Kind::Sample, span).await?;
    Ok(Json(series(samples, wanted.metric.as_deref())))
}

/// Sorts samples by metric and guest.
fn series(samples: Vec<(u64, Sample)>, wanted: Option<&str>) -> Vec<Series> {
    let mut all = BTreeMap::<(String, String), Vec<Point>>::new();
    for (at_ms, sample) in samples {
        let metrics = sample.into_iter().filter(|(metric, _)| wanted.is_none_or(|wanted| wanted == metric));
        for (metric, values) in metrics {
            for (of, value) in values {
                all.entry((metric.clone(), of)).or_default().push(Point { at_ms, value });
            }
        }
    }
    all.into_iter().map(|((metric, of), points)| Series { metric, of, points }).collect()
}

impl From<HistoryError> for Refused {
    fn from(error: HistoryError) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "failed", error.to_string())
    }
}

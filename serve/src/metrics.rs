// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics of all hosts for Prometheus, at `/metrics`. They are those that each host reported last: a scrape asks the
//! hosts nothing. A client that does not ask for OpenMetrics gets the older text format ([`text`]).

mod cpus;
mod devices;
mod disks;
mod family;
mod guests;
mod hosts;
mod past;
mod text;
mod updates;

use std::fmt;
use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use crate::api::{App, Refused};
use crate::history::HistoryHealth;
use crate::host::{Host, Link, Snapshot};

/// The media types of both formats.
const OPEN_METRICS: &str = "application/openmetrics-text";
const OPEN_METRICS_1: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The contents of a scrape.
struct Scrape(Vec<Scraped>, HistoryHealth);

/// A host with its last report.
struct Scraped {
    host: Arc<Host>,
    snapshot: Arc<Snapshot>,
}

impl fmt::Debug for Scrape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|scraped| &scraped.host.name)).finish()
    }
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let all = &self.0;
        hosts::encode(all, &mut encoder)?;
        // The report of a host without a line is out of date.
        let reached: Vec<&Scraped> = all.iter().filter(|scraped| scraped.snapshot.link == Link::Connected).collect();
        hosts::encode_reached(&reached, &mut encoder)?;
        cpus::encode(&reached, &mut encoder)?;
        guests::encode(&reached, &mut encoder)?;
        devices::encode(&reached, &mut encoder)?;
        disks::encode(&reached, &mut encoder)?;
        updates::encode(all, &mut encoder)?;
        past::encode(&self.1, &mut encoder)
    }
}

/// Returns all metrics, in OpenMetrics.
fn figures(app: &App) -> Result<String, fmt::Error> {
    let scraped = app.hosts.values().map(|host| Scraped { host: host.clone(), snapshot: host.snapshot() });
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scrape(scraped.collect(), app.history.health())));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

/// Answers a scrape.
///
/// # Errors
/// The figures cannot be formatted.
pub async fn scrape(State(app): State<App>, headers: HeaderMap) -> Result<Response, Refused> {
    let text = figures(&app).map_err(|_| Refused::failed("the figures cannot be formatted".to_owned()))?;
    let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    Ok(match accepted.contains(OPEN_METRICS) {
        true => ([(CONTENT_TYPE, OPEN_METRICS_1)], text).into_response(),
        false => ([(CONTENT_TYPE, TEXT)], text::from_open_metrics(&text)).into_response(),
    })
}

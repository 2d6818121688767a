// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of the history.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;

use super::family::family;
use crate::history::HistoryHealth;

/// Writes them.
pub(super) fn encode(health: &HistoryHealth, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let one = |value: f64| [(Vec::new(), value)];
    let up = family("baton_history_up", "1 if events, logs and metrics of the past are kept");
    up.gauge(encoder, one(f64::from(u8::from(health.is_kept))))?;
    let size = family("baton_history", "Size of the history").bytes();
    size.gauge(encoder, one(health.bytes as f64))?;
    let failures = family("baton_history_failures", "How often the history's file could not be used");
    failures.counter(encoder, one(health.failures as f64))?;
    let dropped = family("baton_history_dropped_records", "Records that the history could not keep");
    dropped.counter(encoder, one(health.dropped as f64))
}

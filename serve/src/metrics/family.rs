// SPDX-License-Identifier: MIT OR Apache-2.0
//! One metric with its rows.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use serde::Serialize;

use crate::updates::Buckets;

/// The labels of a row.
pub(super) type Labels = Vec<(&'static str, String)>;

/// A row.
pub(super) type Row = (Labels, f64);

/// A metric's name, its meaning and its unit. The encoder adds the unit, and `_total` to a counter's name.
pub(super) struct Family {
    pub name: &'static str,
    pub help: &'static str,
    pub unit: Option<Unit>,
}

/// Returns a family without a unit.
pub(super) fn family(name: &'static str, help: &'static str) -> Family {
    Family { name, help, unit: None }
}

/// Returns a row's labels. The encoder escapes text of a host, whatever it holds.
pub(super) fn labels<const N: usize>(pairs: [(&'static str, &str); N]) -> Labels {
    pairs.into_iter().map(|(key, value)| (key, value.to_owned())).collect()
}

/// Returns the name that a value has in JSON.
pub(super) fn word(value: &impl Serialize) -> String {
    let json = serde_json::to_value(value).ok();
    json.and_then(|json| json.as_str().map(str::to_owned)).unwrap_or_else(|| "unknown".to_owned())
}

impl Family {
    pub(super) fn seconds(self) -> Self {
        Self { unit: Some(Unit::Seconds), ..self }
    }

    pub(super) fn bytes(self) -> Self {
        Self { unit: Some(Unit::Bytes), ..self }
    }

    pub(super) fn ratios(self) -> Self {
        Self { unit: Some(Unit::Ratios), ..self }
    }

    /// Writes gauges.
    pub(super) fn gauge(self, encoder: &mut DescriptorEncoder<'_>, rows: impl IntoIterator<Item = Row>) -> fmt::Result {
        let Self { name, help, unit } = &self;
        let mut family = encoder.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
        rows.into_iter().try_for_each(|(labels, value)| ConstGauge::new(value).encode(family.encode_family(&labels)?))
    }

    /// Writes counters.
    pub(super) fn counter(
        self,
        encoder: &mut DescriptorEncoder<'_>,
        rows: impl IntoIterator<Item = Row>,
    ) -> fmt::Result {
        let Self { name, help, unit } = &self;
        let mut family = encoder.encode_descriptor(name, help, unit.as_ref(), MetricType::Counter)?;
        rows.into_iter().try_for_each(|(labels, value)| ConstCounter::new(value).encode(family.encode_family(&labels)?))
    }

    /// Writes histograms.
    pub(super) fn histogram(
        self,
        encoder: &mut DescriptorEncoder<'_>,
        rows: impl IntoIterator<Item = (Labels, Buckets)>,
    ) -> fmt::Result {
        let Self { name, help, unit } = &self;
        let mut family = encoder.encode_descriptor(name, help, unit.as_ref(), MetricType::Histogram)?;
        rows.into_iter().try_for_each(|(labels, Buckets { sum, count, buckets })| {
            family.encode_family(&labels)?.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
        })
    }

    /// Writes texts, as labels.
    pub(super) fn info(
        self,
        encoder: &mut DescriptorEncoder<'_>,
        rows: impl IntoIterator<Item = Labels>,
    ) -> fmt::Result {
        let Self { name, help, unit } = &self;
        let mut family = encoder.encode_descriptor(name, help, unit.as_ref(), MetricType::Info)?;
        rows.into_iter().try_for_each(|labels| family.encode_info(&labels))
    }
}

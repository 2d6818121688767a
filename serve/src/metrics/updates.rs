// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of updates, also of those asked for elsewhere.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;

use super::Scraped;
use super::family::{Labels, Row, family, labels};
use crate::updates::{Buckets, Last, Step, Updates, seconds};

/// Writes them.
pub(super) fn encode(all: &[Scraped], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let of = |scraped: &Scraped| labels([("host", &scraped.host.name)]);
    let each = |figure: fn(&Updates) -> f64| {
        all.iter().map(move |scraped| (of(scraped), figure(&scraped.host.shared.updates())))
    };
    let updates = family("baton_updates", "Updates of the host that its timeline has shown");
    updates.counter(encoder, each(|updates| updates.sums.times.seen as f64))?;
    let back = family("baton_update_roll_backs", "Updates that were rolled back, by reason");
    back.counter(encoder, all.iter().flat_map(roll_backs))?;
    let blackout = family("baton_update_blackout", "Time in which guests stood still in an update").seconds();
    blackout.histogram(
        encoder,
        all.iter().map(|scraped| (of(scraped), scraped.host.shared.updates().sums.times.blackouts())),
    )?;
    let phase = family("baton_update_phase", "Longest time of a CPU in this phase of an update").seconds();
    phase.histogram(encoder, all.iter().flat_map(phases))?;
    let last = |figure: fn(&Last) -> u64| {
        all.iter().filter_map(move |scraped| {
            let updates = scraped.host.shared.updates();
            updates.sums.times.last.as_ref().map(|last| (of(scraped), seconds(figure(last))))
        })
    };
    let preparation = family("baton_update_last_preparation", "Time of the last update's preparation, guests running");
    preparation.seconds().gauge(encoder, last(|last| last.preparation_ns))?;
    let blackout =
        family("baton_update_last_blackout", "Time in which guests stood still in the last update").seconds();
    blackout.gauge(encoder, last(|last| last.blackout_ns))?;
    let steps = family("baton_update_last_phase", "Longest time of a CPU in this step of the last blackout").seconds();
    steps.gauge(encoder, all.iter().flat_map(last_steps))?;
    let requests = family("baton_update_requests", "Updates that clients of the service have asked for, by their end");
    requests.counter(
        encoder,
        all.iter().flat_map(|scraped| {
            let ends = [(Step::Done, "done"), (Step::Refused, "refused"), (Step::Failed, "failed")];
            let updates = scraped.host.shared.updates();
            ends.map(|(step, name)| {
                let count = updates.sums.ends.get(&step).copied().unwrap_or_default();
                (labels([("host", &scraped.host.name), ("result", name)]), count as f64)
            })
        }),
    )
}

fn roll_backs(scraped: &Scraped) -> Vec<Row> {
    let row = |(reason, count)| (labels([("host", &scraped.host.name), ("reason", reason)]), count as f64);
    scraped.host.shared.records().counts.roll_backs().map(row).collect()
}

fn phases(scraped: &Scraped) -> Vec<(Labels, Buckets)> {
    let updates = scraped.host.shared.updates();
    let phases = updates.sums.times.phases();
    phases.map(|(phase, times)| (labels([("host", &scraped.host.name), ("phase", phase)]), times)).collect()
}

fn last_steps(scraped: &Scraped) -> Vec<Row> {
    let updates = scraped.host.shared.updates();
    let steps = updates.sums.times.last.iter().flat_map(|last| &last.steps);
    steps.map(|(step, ns)| (labels([("host", &scraped.host.name), ("phase", step)]), seconds(*ns))).collect()
}

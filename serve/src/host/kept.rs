// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of a host's state that the history keeps.

use serde::{Deserialize, Serialize};

use super::records::{MAX_EVENTS, MAX_LOG};
use super::{Counts, Records, Shared};
use crate::history::{History, Item, Kind};
use crate::updates::{MAX_UPDATES, Sums, Updates};

#[cfg(test)]
mod tests;

/// The kept state: one value, so that the host's boot and the numbers since this boot belong together.
#[derive(Serialize)]
struct State<'s> {
    #[serde(flatten)]
    counts: &'s Counts,
    updates: &'s Sums,
}

/// The part of the state that is about updates. It is read apart from the counts: if one of the two has a form that
/// this release cannot read, the other one is still there.
#[derive(Default, Deserialize)]
#[serde(default)]
struct OfUpdates {
    updates: Sums,
}

/// Returns the records and the updates of a host that the history has kept.
pub(super) fn restored(history: &History, host: &str) -> (Records, Updates) {
    let records = Records {
        log: history.last(Kind::Log, host, MAX_LOG).into(),
        events: history.last(Kind::Event, host, MAX_EVENTS).into(),
        counts: history.state(host).unwrap_or_default(),
    };
    let OfUpdates { updates } = history.state(host).unwrap_or_default();
    (records, Updates::restored(updates, history.last(Kind::Update, host, MAX_UPDATES)))
}

impl Shared {
    /// Keeps a record in the history.
    pub(super) fn keep(&self, kind: Kind, (at_ms, id): (u64, u64), record: &impl Serialize) {
        // All messages of the host have a form in JSON.
        if let Ok(json) = serde_json::to_vec(record) {
            self.history.keep(Item::Record { kind, host: self.name.to_string(), at_ms, id, json });
        }
    }

    /// Keeps the state in the history, after the records that it counts. Only the thread that owns the line does so:
    /// another one could put a count into the queue before its record.
    pub(super) fn keep_state(&self) {
        let (records, updates) = (self.records(), self.updates());
        let state = State { counts: &records.counts, updates: &updates.sums };
        if let Ok(json) = serde_json::to_vec(&state) {
            self.history.keep(Item::State { host: self.name.to_string(), json });
        }
    }
}

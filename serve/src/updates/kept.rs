// SPDX-License-Identifier: MIT OR Apache-2.0
//! Updates that the history has kept, for a service that starts again.
//!
//! Each update is a record of its own, written again at each step. The sums are written less often: they lack the ends
//! that came last.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use wire::UpdateReport;

use super::{Step, Times, Update, Updates};

#[cfg(test)]
mod tests;

/// The message of an update that was under way when the service ended.
const CUT: &str = "the service ended while this update was under way: the host may have carried it out; `baton info` \
                   shows the image that it runs";

/// Sums over all updates of a host, which the history keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sums {
    /// Number of ends, by kind, of updates that clients have asked for.
    pub ends: BTreeMap<Step, u64>,
    /// The times of those that the timeline has shown.
    pub times: Times,
}

impl Updates {
    /// Returns the updates that were kept, oldest first, and their sums. None of them is under way any more.
    pub fn restored(mut sums: Sums, kept: Vec<Update>) -> Self {
        let asked: VecDeque<Update> = kept.into_iter().map(ended).collect();
        // One update of a host is under way at a time, so the sums have the ends of the lowest numbers.
        let counted = sums.ends.values().sum();
        for update in asked.iter().filter(|update| update.id > counted) {
            *sums.ends.entry(update.step).or_default() += 1;
        }
        let last_id = asked.iter().map(|update| update.id).fold(counted, u64::max);
        Self { asked, sums, last_id }
    }
}

/// Returns an update as it is after the service has ended: one that was under way has failed.
fn ended(update: Update) -> Update {
    if update.step.is_last() {
        return update;
    }
    Update { step: Step::Failed, message: Some(CUT.to_owned()), ..update }
}

/// Reads a report. One of a release with other fields is left out, and the update stays.
pub(super) fn readable<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<UpdateReport>, D::Error> {
    let report = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(report).ok().flatten())
}

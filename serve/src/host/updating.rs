// SPDX-License-Identifier: MIT OR Apache-2.0
//! Beginning and end of the updates that clients of the service ask for.

use std::sync::Arc;
use std::time::Instant;

use baton::timeline::Run;

use super::{News, Shared, locked};
use crate::updates::{End, How, Update};

impl Shared {
    /// Notes an update that a client asks for.
    ///
    /// # Errors
    /// One is under way; its number.
    pub fn begin_update(&self, who: &str, how: How, total_bytes: u64) -> Result<Update, u64> {
        let update = self.updates().begin(&self.name, who, how, total_bytes)?;
        self.publish(News::Update(update.clone()));
        Ok(update)
    }

    /// Notes the end of an update.
    pub fn end_update(&self, id: u64, End { step, message, report }: End) {
        let update = self.updates().advance(id, |update| {
            (update.step, update.message, update.report) = (step, message, report);
        });
        update.into_iter().for_each(|update| self.publish(News::Update(update)));
    }

    /// Keeps the runs that the host's timeline shows.
    pub(super) fn keep_runs(&self, runs: Vec<Run>) {
        *locked(&self.runs) = Some((Instant::now(), Arc::new(runs)));
    }
}

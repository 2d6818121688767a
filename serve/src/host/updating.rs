// SPDX-License-Identifier: MIT OR Apache-2.0
//! Beginning, progress and end of the updates that clients of the service ask for.

use std::sync::Arc;
use std::time::Instant;

use baton::timeline::Run;

use super::{News, Shared, locked};
use crate::history::Kind;
use crate::updates::{End, How, Step, Update};

impl Shared {
    /// Notes an update that a client asks for.
    ///
    /// # Errors
    /// One is under way; its number.
    pub fn begin_update(&self, who: &str, how: How, total_bytes: u64) -> Result<Update, u64> {
        let update = self.updates().begin(&self.name, who, how, total_bytes)?;
        self.keep_update(&update);
        self.publish(News::Update(update.clone()));
        Ok(update)
    }

    /// Notes progress of an update. Clients are notified of a new step, and of each percent that has been sent.
    pub fn note_progress(&self, id: u64, step: Step, sent_bytes: u64) {
        let percent = |update: &Update, bytes: u64| bytes * 100 / update.total_bytes.max(1);
        let mut is_news = false;
        let update = self.advance(id, |update| {
            let sent = if step == Step::Sending { sent_bytes } else { update.sent_bytes };
            is_news = update.step != step || percent(update, sent) != percent(update, update.sent_bytes);
            (update.step, update.sent_bytes) = (step, sent);
        });
        update.filter(|_| is_news).into_iter().for_each(|update| self.publish(News::Update(update)));
    }

    /// Notes the end of an update.
    pub fn end_update(&self, id: u64, End { step, message, report }: End) {
        let update = self.advance(id, |update| {
            (update.step, update.message, update.report) = (step, message, report);
        });
        update.into_iter().for_each(|update| self.publish(News::Update(update)));
    }

    /// Changes the update that is under way, if it is this one, and keeps each new step. Returns it as it is now.
    fn advance(&self, id: u64, change: impl FnOnce(&mut Update)) -> Option<Update> {
        let mut updates = self.updates();
        let before = updates.under_way()?.step;
        let update = updates.advance(id, change)?;
        if update.step != before {
            // Under the lock: an end is in the history before the sums that count it.
            self.keep_update(&update);
        }
        Some(update)
    }

    fn keep_update(&self, update: &Update) {
        self.keep(Kind::Update, (update.asked_ms, update.id), update);
    }

    /// Keeps the runs that the host's timeline shows.
    pub(super) fn keep_runs(&self, runs: Vec<Run>) {
        *locked(&self.runs) = Some((Instant::now(), Arc::new(runs)));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the host sends unasked: the choice of it, and its way to clients.

use std::time::Instant;

use anyhow::Result;
use baton::client::Client;
use wire::{EventKind, Stream, Subscription};

use super::{AFTER_EVENT, News, Owner};
use crate::history::Kind;

impl Owner {
    /// Chooses what the host sends unasked: consoles only while somebody follows one.
    pub(super) fn subscribe(&mut self, client: &mut Client) -> Result<()> {
        let consoles = self.shared.consoles.is_followed();
        client.subscribe(Subscription { log: true, events: true, consoles })?;
        self.note_consoles(consoles);
        Ok(())
    }

    /// Notes whether the host sends consoles from now on. While it does not, it keeps the newest output.
    pub(super) fn note_consoles(&mut self, has_consoles: bool) {
        if self.has_consoles && !has_consoles {
            self.without_consoles = Some(Instant::now());
        } else if has_consoles && let Some(since) = self.without_consoles.take() {
            self.shared.consoles.note_pause(since.elapsed());
        }
        self.has_consoles = has_consoles;
    }

    /// Takes what the host has sent unasked. Returns whether it has been updated.
    pub(super) fn note(&mut self, stream: Stream<'static>) -> bool {
        match stream {
            Stream::Log(record) => {
                let at_ms = self.wall_ms(record.time_ns);
                let kept = self.shared.records().note(record, at_ms);
                if let Some(kept) = kept {
                    self.is_counted = true;
                    self.shared.keep(Kind::Log, (kept.at_ms, kept.id), &kept);
                    self.shared.tell(News::Log(self.shared.name.clone(), kept));
                }
                false
            }
            Stream::Event(event) => {
                let is_update = matches!(event.kind, EventKind::HostUpdated { .. });
                self.note_event(event.into_owned()) && is_update
            }
            Stream::Console { name, bytes } => {
                self.shared.consoles.note(&name, &bytes);
                false
            }
        }
    }

    /// Returns whether the event is new.
    pub(super) fn note_event(&mut self, event: wire::Event) -> bool {
        let at_ms = self.wall_ms(event.time_ns);
        let Some(kept) = self.shared.records().note_event(event, at_ms) else { return false };
        self.is_counted = true;
        self.due = self.due.min(self.earliest.max(Instant::now() + AFTER_EVENT));
        self.shared.keep(Kind::Event, (kept.at_ms, kept.id), &kept);
        self.shared.tell(News::Event(self.shared.name.clone(), kept));
        true
    }
}

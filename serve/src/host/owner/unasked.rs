// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages that the host sends unasked: their choice, and their way to clients.

use std::time::Instant;

use anyhow::Result;
use baton::client::Client;
use wire::{EventKind, Stream, Subscription};

use super::{AFTER_EVENT, Choice, News, Owner};
use crate::history::Kind;

impl Owner {
    /// Subscribes to the host's unasked messages: consoles only of guests that a client follows.
    pub(super) fn subscribe(&mut self, client: &mut Client) -> Result<()> {
        let choice = self.shared.consoles.choice();
        let wanted = Subscription { log: true, events: true, consoles: choice.is_all };
        match choice.is_all {
            true => client.subscribe(wanted)?,
            // An image that knows no choice sends more than is wanted.
            false => {
                let names: Vec<&str> = choice.names.iter().map(String::as_str).collect();
                client.subscribe_consoles(wanted, &names)?;
            }
        }
        self.note_consoles(choice);
        Ok(())
    }

    /// Notes the guests whose consoles the host sends from now on.
    pub(super) fn note_consoles(&mut self, sent: Choice) {
        if self.consoles != sent {
            self.shared.consoles.note_choice(&sent);
            self.consoles = sent;
        }
    }

    /// Handles a message that the host has sent unasked. Returns whether the host has been updated.
    pub(super) fn note(&mut self, stream: Stream<'static>) -> bool {
        match stream {
            Stream::Log(record) => {
                let at_ms = self.wall_ms(record.time_ns);
                let kept = self.shared.records().note(record, at_ms);
                if let Some(kept) = kept {
                    self.is_counted = true;
                    self.shared.keep(Kind::Log, (kept.at_ms, kept.id), &kept);
                    self.shared.publish(News::Log(self.shared.name.clone(), kept));
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
        self.note_pci_event(&kept.record.kind);
        self.due = self.due.min(self.earliest.max(Instant::now() + AFTER_EVENT));
        self.shared.keep(Kind::Event, (kept.at_ms, kept.id), &kept);
        self.shared.publish(News::Event(self.shared.name.clone(), kept));
        true
    }
}

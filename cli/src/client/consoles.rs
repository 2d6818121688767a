// SPDX-License-Identifier: MIT OR Apache-2.0
//! Subscription to the consoles of chosen guests.

use anyhow::Result;
use wire::{Refusal, RefusalCode, RequestBody, Subscription};

use super::Client;

impl Client {
    /// Subscribes to these messages, and to the consoles of these guests alone: others' output does not take the line's
    /// time. An update ends the choice. Returns `false` if the host's image knows no choice: it sends all consoles.
    ///
    /// # Errors
    /// As [`Self::request`].
    pub fn subscribe_consoles(&mut self, wanted: Subscription, names: &[&str]) -> Result<bool> {
        self.subscribe(Subscription { consoles: false, ..wanted })?;
        if names.is_empty() {
            return Ok(true);
        }
        let names = names.iter().map(|&name| name.to_owned()).collect();
        match self.request(RequestBody::SubscribeConsoles { names }) {
            Ok(_) => self.subscription.consoles = true,
            Err(error) if is_unknown_there(&error) => {
                self.subscribe(Subscription { consoles: true, ..wanted })?;
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        Ok(true)
    }
}

/// Returns whether the host could not read a request: its image may be older than that.
fn is_unknown_there(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Refusal>().is_some_and(|refusal| refusal.code == RefusalCode::Protocol)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest that a request names.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use wire::{Refusal, RefusalCode};

use crate::guests::guest::Guest;
use crate::guests::slots::GUESTS;

/// The guest of this name.
pub fn find(name: &str) -> Result<Arc<Guest>, Refusal> {
    GUESTS.named(name).ok_or_else(|| Refusal {
        code: RefusalCode::UnknownVm,
        reason: format!("there is no guest '{name}'"),
        hint: known_names(),
    })
}

fn known_names() -> String {
    let names: Vec<String> = GUESTS.all().map(|guest| guest.config.name.clone()).collect();
    let text = format!("this host has: {}", names.join(", "));
    wire::bounded(&text, wire::MAX_REASON_BYTES).to_string()
}

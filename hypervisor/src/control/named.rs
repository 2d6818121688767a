// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest that a request names.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use wire::{Refusal, RefusalCode};

use crate::guests::guest::{GUESTS, Guest, Guests};

/// The guest of this name.
pub fn find(name: &str) -> Result<&'static Guest, Refusal> {
    let guests = GUESTS.get();
    guests.and_then(|guests| guests.named(name)).ok_or_else(|| Refusal {
        code: RefusalCode::UnknownVm,
        reason: format!("there is no guest '{name}'"),
        hint: guests.map_or_else(String::new, known_names),
    })
}

fn known_names(guests: &Guests) -> String {
    let names: Vec<&str> = guests.all.iter().map(|guest| guest.config.name.as_str()).collect();
    let text = format!("this host has: {}", names.join(", "));
    wire::bounded(&text, wire::MAX_REASON_BYTES).to_string()
}

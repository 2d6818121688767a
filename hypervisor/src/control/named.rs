// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest that a request names.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use wire::{Refusal, RefusalCode, VmState};

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

/// The guest of this name, if it is in one of these states.
pub fn find_in(name: &str, allowed: &[VmState]) -> Result<Arc<Guest>, Refusal> {
    let guest = find(name)?;
    let state = guest.status().state;
    if allowed.contains(&state) {
        return Ok(guest);
    }
    Err(Refusal {
        code: RefusalCode::WrongState,
        reason: format!("guest '{name}' is {state}"),
        hint: format!("that can be done while it is {}", one_of(allowed)),
    })
}

fn one_of(states: &[VmState]) -> String {
    let names: Vec<String> = states.iter().map(ToString::to_string).collect();
    names.join(" or ")
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests that change which guests PCI functions are assigned to. A guest that runs keeps what it has.

use alloc::format;
use alloc::string::{String, ToString};

use pci::Bdf;
use wire::{Refusal, RefusalCode, ReplyBody};

use super::named::find;
use crate::guests::guest::Guest;
use crate::guests::pci::assignments::{self, Problem};

/// Assigns a function to a guest that does not run.
///
/// # Errors
/// Nothing has changed.
pub fn assign(function: &str, guest: &str, without_reset: bool) -> Result<ReplyBody, Refusal> {
    let guest = find(guest)?;
    check_stopped(guest)?;
    let place = assignments::assign(function, guest, without_reset).map_err(refused)?;
    Ok(changed(place, guest))
}

/// Releases a function from a guest that does not run: the named one, or the only one that is assigned it.
///
/// # Errors
/// Nothing has changed.
pub fn release(function: &str, guest: Option<&str>) -> Result<ReplyBody, Refusal> {
    let named = guest.map(find).transpose()?;
    let name = named.map(|guest| guest.config.name.as_str());
    let (place, owner) = assignments::owner_of(function, name).map_err(refused)?;
    let owner = find(&owner)?;
    check_stopped(owner)?;
    assignments::release(place, owner).map_err(refused)?;
    Ok(changed(place, owner))
}

/// Functions come and go only between two runs of a guest.
fn check_stopped(guest: &Guest) -> Result<(), Refusal> {
    if assignments::has_stopped(guest) {
        return Ok(());
    }
    let (name, state) = (&guest.config.name, guest.status().state);
    Err(Refusal {
        code: RefusalCode::WrongState,
        reason: format!("guest '{name}' is {state}: its PCI functions change only while it is stopped"),
        hint: format!("`baton vm stop {name}` first"),
    })
}

fn changed(place: Bdf, guest: &Guest) -> ReplyBody {
    let place = (place.segment, place.bus, place.device(), place.function());
    ReplyBody::PciAssignment { place, guest: guest.config.name.clone() }
}

fn refused(problem: Problem) -> Refusal {
    let (code, reason, hint) = match problem {
        Problem::NoFunction(reason) => (RefusalCode::Invalid, reason, String::new()),
        Problem::Refused(error) => (RefusalCode::WrongState, error.to_string(), error.hint()),
        Problem::Unfit { place, reason, hint } => {
            (RefusalCode::Failed, format!("PCI function {place}: {reason}"), hint.to_string())
        }
    };
    let bounded = |text: &str| wire::bounded(text, wire::MAX_REASON_BYTES).to_string();
    Refusal { code, reason: bounded(&reason), hint: bounded(&hint) }
}

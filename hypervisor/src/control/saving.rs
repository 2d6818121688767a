// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests that are saved for a client, and go on from that.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use wire::{MAX_PAGE_BYTES, Refusal, RefusalCode, ReplyBody, VmState};

use super::dump::read;
use super::images::ImageOrders;
use super::named::{find, find_in};
use crate::guests::configuration;
use crate::guests::guest::{Guest, Order};
use crate::guests::staged::{Staged, memory_of, pieces};

/// A page of the state of a paused guest.
pub fn page(name: &str, from_byte: u32) -> Result<ReplyBody, Refusal> {
    read(&*find(name)?, |run| {
        let saved = run.saved().map_err(|reason| Refusal {
            code: RefusalCode::WrongState,
            reason: format!("guest '{name}' cannot be saved: {reason}"),
            hint: String::new(),
        })?;
        let whole = saved.as_deref().unwrap_or_default();
        let rest = whole.get(from_byte as usize..).unwrap_or_default();
        let bytes = rest[..rest.len().min(MAX_PAGE_BYTES)].to_vec();
        Ok(ReplyBody::Saved { bytes, total_bytes: whole.len() as u32 })
    })
}

/// Has a guest go on from what was sent.
///
/// # Errors
/// It runs, or what was sent is not all that it takes: it stays stopped.
pub fn restore(images: &mut ImageOrders, name: &str, state: &str, memory: &[String]) -> Result<ReplyBody, Refusal> {
    let guest = find_in(name, VmState::ENDED)?;
    if guest.has_orders() {
        let (reason, hint) =
            (format!("guest '{name}' has just been given an order"), "try again in a moment".to_string());
        return Err(Refusal { code: RefusalCode::WrongState, reason, hint });
    }
    let state = configuration::sent(state).ok_or_else(|| invalid("its state is not there", "send it first"))?;
    let frames = images.take_memory(&wanted(&guest, memory)?)?;
    let memory = memory_of(guest.config.memory_bytes, frames);
    let memory = memory.ok_or_else(|| invalid("its memory is no guest's", "send it again"))?;
    guest.stage(Staged { memory, state: state.content().into() });
    // A client that asks from here on hears nothing of the end before.
    guest.set_state(VmState::Loading, None);
    guest.order(Order::Start);
    Ok(ReplyBody::Done)
}

/// The digest and the size of each piece of its memory.
fn wanted(guest: &Guest, memory: &[String]) -> Result<Vec<([u8; 32], u64)>, Refusal> {
    let sizes: Vec<u64> = pieces(guest.config.memory_bytes).map(|(_, bytes)| bytes).collect();
    if memory.len() != sizes.len() {
        let reason =
            format!("guest '{}' has {} pieces of memory, not {}", guest.config.name, sizes.len(), memory.len());
        return Err(invalid(&reason, "restore it as a guest with as much memory as it had"));
    }
    let digests: Option<Vec<[u8; 32]>> = memory.iter().map(|digits| digest(digits)).collect();
    let digests = digests.ok_or_else(|| invalid("a piece of memory is named by no SHA-256", "use its 64 digits"))?;
    Ok(digests.into_iter().zip(sizes).collect())
}

fn digest(digits: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    let is_whole = digits.len() == 64 && digits.is_ascii();
    for (place, at) in digest.iter_mut().zip((0..64).step_by(2)).filter(|_| is_whole) {
        *place = u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()?;
    }
    is_whole.then_some(digest)
}

fn invalid(reason: &str, hint: &str) -> Refusal {
    Refusal { code: RefusalCode::Invalid, reason: reason.to_string(), hint: hint.to_string() }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests that are paused for a client that reads them: they are resumed when none does.

use wire::MAX_HOLD_MS;

use crate::arch::{cpu, timer};
use crate::guests::guest::{Guest, Order};
use crate::guests::slots::GUESTS;

/// The time for which a guest that another image has held is held on.
const INHERITED_MS: u32 = 8_000;

/// Inherits a pause from another image: its reader is given time to ask this one.
pub fn inherit(guest: &Guest) {
    begin(guest, INHERITED_MS);
}

/// A reader has asked.
pub fn renew(guest: &Guest) {
    guest.lease().renew(cpu::tsc());
}

/// Resumes guests that no client has read for the agreed time.
pub fn poll() {
    for guest in GUESTS.all() {
        if guest.lease().has_run_out(cpu::tsc()) {
            log::warn!("guest {}: its reader is gone, so it is resumed", guest.config.name);
            guest.order(Order::Resume);
        }
    }
}

/// Returns when the next one is to go on.
pub fn alarm() -> Option<u64> {
    GUESTS.all().filter_map(|guest| guest.lease().alarm()).min()
}

/// Pauses it no longer than for this time after its reader's last request. It is paused already.
pub fn begin(guest: &Guest, ms: u32) {
    let ticks = timer::us_to_ticks(u64::from(ms.clamp(1, MAX_HOLD_MS)) * 1000);
    guest.lease().begin(cpu::tsc(), ticks);
}

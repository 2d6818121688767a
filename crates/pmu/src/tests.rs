// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules of counting, on time that a guest has run. The use of registers is tested against a model of them, in
//! `sim`.

mod counters;
mod guests;
mod policies;
mod scheduling;
mod views;

use crate::guest::{Config, Filter, Vendor, VirtualPmu};
use crate::soft::Soft;
use crate::{Backend as _, Policy};

/// Select: cycles of an AMD guest, in all modes, with interrupt, enabled.
const AMD_CYCLES: u64 = 0x76 | 0x3 << 16 | 1 << 20 | 1 << 22;
/// The same of an Intel guest.
const INTEL_CYCLES: u64 = 0x3c | 0x3 << 16 | 1 << 20 | 1 << 22;
const FULL: u64 = (1 << 48) - 1;

fn config(vendor: Vendor, policy: Policy) -> Config {
    Config { vendor, policy, filter: Filter::ALL }
}

/// A guest's counters, switched in.
fn guest(vendor: Vendor, policy: Policy) -> VirtualPmu<Soft> {
    let mut guest = VirtualPmu::new(&config(vendor, policy), Soft::new(0));
    guest.switch_in(Soft::new(0).counters(), 0);
    guest
}

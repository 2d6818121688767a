// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that a manifest's settings are possible at all. Checks that depend on the machine (enough memory, enough
//! CPUs) and on the files (a valid kernel) are the host's, guest by guest.

use alloc::collections::BTreeSet;

use crate::error::Problem;
use crate::manifest::{GuestConfig, Manifest, limits};

/// Checks counts, names and numbers.
pub(super) fn manifest(manifest: &Manifest) -> Result<(), Problem> {
    if manifest.files.len() > limits::FILES {
        return Err(Problem::TooManyFiles);
    }
    if manifest.host.trusted_keys.len() > limits::TRUSTED_KEYS {
        return Err(Problem::TooManyKeys);
    }
    if manifest.guests.len() > limits::GUESTS {
        return Err(Problem::TooManyGuests);
    }
    let mut names = BTreeSet::new();
    for guest in &manifest.guests {
        let bad = |reason| Problem::BadGuest { guest: guest.name.clone(), reason };
        self::guest(guest).map_err(bad)?;
        if !names.insert(&guest.name) {
            return Err(bad("stands twice"));
        }
    }
    Ok(())
}

fn guest(guest: &GuestConfig) -> Result<(), &'static str> {
    if !is_guest_name(&guest.name) {
        return Err("has a bad name: 1 to 32 letters, digits, '-', '_' and '.' are possible");
    }
    if guest.cmdline.len() > limits::CMDLINE_BYTES || guest.cmdline.contains('\0') {
        return Err("has a bad command line: at most 4095 bytes without zeroes are possible");
    }
    if guest.modules.len() > limits::MODULES {
        return Err("has too many modules: 16 are possible");
    }
    if !(1..=limits::VCPUS).contains(&guest.vcpus) {
        return Err("has a bad number of CPUs: 1 to 512 are possible");
    }
    if !(1..=limits::WEIGHT_MOST).contains(&guest.weight) {
        return Err("has a bad weight: 1 to 1024 are possible");
    }
    if guest.pmu_events.as_ref().is_some_and(|events| events.len() > limits::PMU_EVENTS) {
        return Err("names too many events for its performance counters: 16 are possible");
    }
    if guest.functions.len() > limits::FUNCTIONS {
        return Err("gets too many PCI functions: 16 are possible");
    }
    if guest.functions.iter().any(|function| function.selector.len() > limits::SELECTOR_BYTES) {
        return Err("gets a PCI function whose selector is too long: 64 bytes are possible");
    }
    let is_whole = guest.memory_bytes.is_multiple_of(limits::MEMORY_GRANULE_BYTES);
    if !is_whole || !(limits::MEMORY_LEAST_BYTES..=limits::MEMORY_MOST_BYTES).contains(&guest.memory_bytes) {
        return Err("has a bad size of memory: a multiple of 1 MiB up to 128 TiB is possible");
    }
    Ok(())
}

fn is_guest_name(name: &str) -> bool {
    let is_possible = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=limits::GUEST_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_possible)
}

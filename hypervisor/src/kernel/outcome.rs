// SPDX-License-Identifier: MIT OR Apache-2.0
//! The outcome of a restart: how long guests stood still, which CPUs were lost, and the answer to the requester.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use alloc::string::ToString;
use handover::layout::{CheckPolicy, Checked};
use wire::{RestartReport, Verify};
use zerocopy::FromZeros as _;

use super::inherited;
use crate::arch::boot::BUILD;
use crate::arch::{cpu, timer};

/// The time at which the host answered again, and that at which its first guest started; 0 is "not yet".
static READY_AT: AtomicU64 = AtomicU64::new(0);
static GUEST_AT: AtomicU64 = AtomicU64::new(0);
static CPUS: AtomicU32 = AtomicU32::new(0);

/// Notes the number of online CPUs.
pub fn note_cpus(online: u32) {
    CPUS.store(online, Ordering::Relaxed);
}

/// Notes that the control channel is open.
pub fn note_ready() {
    if note(&READY_AT) {
        log_duration("restart: the host was away for", &READY_AT);
    }
}

/// Notes that a guest has started.
pub fn note_guest_started() {
    if note(&GUEST_AT) {
        log_duration("restart: the first guest stood still for", &GUEST_AT);
    }
}

/// The first time counts, and only in an image that replaced another.
fn note(at: &AtomicU64) -> bool {
    inherited::known().is_some() && at.compare_exchange(0, cpu::tsc(), Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

fn log_duration(what: &str, at: &AtomicU64) {
    let ticks = since_stop(at).unwrap_or(0);
    log::info!("{what} {ticks} cycles ({} us)", timer::ticks_to_ns(ticks) / 1000);
}

/// Ticks since the first guest was stopped.
fn since_stop(at: &AtomicU64) -> Option<u64> {
    let stamps = inherited::known()?.stamps?;
    let at = at.load(Ordering::Acquire);
    (at > 0).then(|| at.wrapping_sub(stamps.stopped.get()))
}

/// The answer to the requester, once the first guest has started or none is going to.
pub fn report(is_starting_guests: bool) -> Option<RestartReport> {
    let known = inherited::known()?;
    let guest = since_stop(&GUEST_AT);
    if guest.is_none() && is_starting_guests {
        return None;
    }
    let cpus = CPUS.load(Ordering::Relaxed);
    let checked = known.checked.unwrap_or_else(Checked::new_zeroed);
    Some(RestartReport {
        generation: known.generation,
        old_version: known.old_version.to_string(),
        new_version: env!("CARGO_PKG_VERSION").to_string(),
        host_blackout_ns: timer::ticks_to_ns(since_stop(&READY_AT).unwrap_or(0)),
        machine_blackout_ns: guest.map(timer::ticks_to_ns),
        cpus,
        cpus_lost: known.cpus.saturating_sub(cpus),
        verify: verify(checked.policy.get()),
        bytes_hashed_before: checked.staged_bytes.get(),
        hashing_before_ns: timer::ticks_to_ns(checked.staged_ticks.get()),
        bytes_hashed_in_blackout: checked.blackout_bytes.get(),
        hashing_in_blackout_ns: timer::ticks_to_ns(checked.blackout_ticks.get()),
        old_build: inherited::old_build().to_string(),
        new_build: BUILD.to_string(),
        signer: inherited::signer(),
    })
}

/// An image before this one that does not state how it checked has not.
fn verify(policy: u32) -> Verify {
    match CheckPolicy::from_number(policy) {
        Some(CheckPolicy::Sha256) => Verify::Sha256,
        Some(CheckPolicy::Early) => Verify::Early,
        Some(CheckPolicy::None) | None => Verify::None,
    }
}

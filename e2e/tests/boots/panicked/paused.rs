// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest that is paused while its interrupts are off does not spin meanwhile.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use baton::config::Guest;
use bundle::OnPanic;
use e2e::host::Host;
use e2e::recipe::{Recipe, tiny};
use wire::{EventKind, RequestBody, VmState};

use super::{A, named};
use crate::Rule;

pub const RULES: &[Rule] = &[("a_pause_is_no_hang", a_pause_is_no_hang)];

const HUNG_S: u32 = 4;
/// Until it is paused: some samples are taken.
const SAMPLED: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_secs(5);

/// It is paused for longer than it may have its interrupts off, and has all that time again once it is resumed.
fn a_pause_is_no_hang() -> Result<()> {
    let hangs = Guest { hung_s: HUNG_S, on_panic: OnPanic::Dump, ..tiny(A, "hostile", "do=hang-cli")? };
    let mut host = Recipe::new().guest(hangs).start()?;
    host.state(A, VmState::Running)?;
    host.listen(SAMPLED);
    host.order(RequestBody::VmPause { name: named(A) })?;
    host.state(A, VmState::Paused)?;
    host.listen(PAUSE);
    host.order(RequestBody::VmResume { name: named(A) })?;
    host.event(&EventKind::VmHung { name: named(A), vcpu: 0 })?;
    let resumed = time_of(&mut host, &EventKind::VmResumed { name: named(A) })?;
    let hung = time_of(&mut host, &EventKind::VmHung { name: named(A), vcpu: 0 })?;
    let after = Duration::from_nanos(hung.saturating_sub(resumed));
    ensure!(after.as_secs() >= u64::from(HUNG_S), "hung {after:?} after it was resumed: {}", host.seen);
    host.order(RequestBody::VmStop { name: named(A) })?;
    host.powers_off()
}

/// Returns the host's time of its last event of this kind, in nanoseconds.
fn time_of(host: &mut Host, kind: &EventKind) -> Result<u64> {
    let (events, _) = host.client()?.events(0)?;
    let event = events.iter().rev().find(|event| event.kind == *kind);
    event.map(|event| event.time_ns).with_context(|| format!("no {kind:?} in {events:?}"))
}

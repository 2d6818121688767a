// SPDX-License-Identifier: MIT OR Apache-2.0
//! A saved guest that goes on much later, on a host with another time stamp counter: to the guest no time has passed.

use handover::state::{self, event_state, watch_flag};

/// Moves a vCPU from the time at which it was saved to one at which the host's time stamp counter is `ticks` further,
/// modulo 2^64: what it has in the host's ticks changes, and what it has in its own stays.
pub fn move_vcpu(vcpu: &mut state::Vcpu, ticks: u64) {
    let later = |at: u64| at.wrapping_add(ticks);
    let (time, events, watch) = (&mut vcpu.time, &mut vcpu.events, &mut vcpu.watch);
    time.tsc_at_start = later(time.tsc_at_start.get()).into();
    time.tsc_offset = time.tsc_offset.get().wrapping_sub(ticks).into();
    if events.flags.get() & event_state::HAS_ALARM != 0 {
        time.alarm = later(time.alarm.get()).into();
    }
    if events.flags.get() & event_state::LOOKS != 0 {
        events.look_at = later(events.look_at.get()).into();
    }
    if watch.flags.get() & watch_flag::RESTS != 0 {
        watch.rests_until = later(watch.rests_until.get()).into();
    }
    // For the CPU of a host it waits from now on.
    vcpu.turn.wants_to_run = 0.into();
}

/// Moves a guest's wall clock: it was stopped for so long.
pub fn move_policy(policy: &mut state::Policy, stopped_ns: u64) {
    policy.boot_unix_ns = policy.boot_unix_ns.get().saturating_add(stopped_ns).into();
}

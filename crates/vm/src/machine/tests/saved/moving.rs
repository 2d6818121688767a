// SPDX-License-Identifier: MIT OR Apache-2.0
//! A saved guest that goes on at another time of the host's time stamp counter.

use handover::state::{self, event_state, watch_flag};
use proptest::prelude::*;
use zerocopy::{FromZeros as _, IntoBytes as _};

use crate::machine::{move_policy, move_vcpu};

proptest! {
    #[test]
    fn to_the_guest_no_time_has_passed(now: u64, ticks: u64, at: [u64; 4], offset: u64, flags: [bool; 3]) {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let mut vcpu = state::Vcpu::new_zeroed();
        vcpu.time.tsc_offset = offset.into();
        vcpu.time.tsc_at_start = at[0].into();
        let [has_alarm, polls, rests] = flags;
        vcpu.events.flags = (flag(has_alarm, event_state::HAS_ALARM) | flag(polls, event_state::LOOKS)).into();
        vcpu.watch.flags = flag(rests, watch_flag::RESTS).into();
        vcpu.time.alarm = flag64(has_alarm, at[1]);
        vcpu.events.look_at = flag64(polls, at[2]);
        vcpu.watch.rests_until = flag64(rests, at[3]);
        let before = vcpu;
        move_vcpu(&mut vcpu, ticks);
        let then = now.wrapping_add(ticks);
        let guests = |vcpu: &state::Vcpu, now: u64| now.wrapping_add(vcpu.time.tsc_offset.get());
        prop_assert_eq!(guests(&vcpu, then), guests(&before, now));
        let left = |vcpu: &state::Vcpu, now: u64| {
            let times = [vcpu.time.tsc_at_start, vcpu.time.alarm, vcpu.events.look_at, vcpu.watch.rests_until];
            times.map(|time| time.get().wrapping_sub(now))
        };
        let is_time = [true, has_alarm, polls, rests];
        for ((left, before), is_time) in left(&vcpu, then).into_iter().zip(left(&before, now)).zip(is_time) {
            prop_assert_eq!(left, if is_time { before } else { 0_u64.wrapping_sub(then) });
        }
        move_vcpu(&mut vcpu, ticks.wrapping_neg());
        prop_assert_eq!(vcpu.as_bytes(), before.as_bytes());
    }
}

fn flag64(is_set: bool, at: u64) -> zerocopy::little_endian::U64 {
    if is_set { at } else { 0 }.into()
}

#[test]
fn a_guest_that_was_stopped_has_begun_later() {
    let mut policy = state::Policy::new_zeroed();
    policy.boot_unix_ns = 5.into();
    move_policy(&mut policy, 7);
    assert_eq!(policy.boot_unix_ns.get(), 12);
}

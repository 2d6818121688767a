// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest that is not what it was when it was packed is noticed.

use handover::layout::guests::{Guest, GuestState, guest_flag};
use update::packed::{Change, Now, Run, flags};
use zerocopy::FromZeros as _;

const RUN: Run = Run { nested_root: 0x5000, is_paused: false, is_ending: false };
const NOW: Now = Now { state: Some(GuestState::Running as u32), run: Some(RUN), has_orders: false };

fn packed(now: &Now, is_held: bool) -> Guest {
    let mut guest = Guest::new_zeroed();
    guest.state = now.state.expect("it can be packed").into();
    guest.nested_root = now.run.map_or(0, |run| run.nested_root).into();
    guest.flags = flags(now.run, is_held, handover::VERSION).into();
    guest
}

#[test]
fn what_has_not_changed_is_current() {
    let ended = Now { state: Some(GuestState::Stopped as u32), run: None, has_orders: false };
    let paused = Now { run: Some(Run { is_paused: true, ..RUN }), ..NOW };
    for now in [NOW, ended, paused] {
        for is_held in [false, true] {
            assert_eq!(now.change_since(&packed(&now, is_held)), None, "{now:?}");
        }
    }
}

#[test]
fn each_change_is_noticed() {
    let changes = [
        (Now { state: Some(GuestState::Panicked as u32), ..NOW }, Change::State),
        (Now { state: None, ..NOW }, Change::State),
        (Now { run: None, ..NOW }, Change::Run),
        (Now { run: Some(Run { nested_root: 0x6000, ..RUN }), ..NOW }, Change::Run),
        (Now { run: Some(Run { is_paused: true, ..RUN }), ..NOW }, Change::Pause),
        (Now { run: Some(Run { is_ending: true, ..RUN }), ..NOW }, Change::Ends),
        (Now { has_orders: true, ..NOW }, Change::Order),
    ];
    for (now, change) in changes {
        assert_eq!(now.change_since(&packed(&NOW, false)), Some(change), "{now:?}");
    }
}

#[test]
fn the_greatest_of_several_changes_is_named() {
    let reset = Run { nested_root: 0x6000, is_paused: true, is_ending: false };
    let now = Now { state: None, run: Some(reset), has_orders: true };
    assert_eq!(now.change_since(&packed(&NOW, false)), Some(Change::Run));
}

#[test]
fn a_reader_that_does_not_know_the_flag_does_not_see_that_a_guest_is_held() {
    assert_eq!(flags(Some(RUN), true, 4), guest_flag::HAS_RUN | guest_flag::IS_HELD);
    assert_eq!(flags(Some(RUN), true, 3), guest_flag::HAS_RUN);
    assert_eq!(flags(None, false, 4), 0);
}

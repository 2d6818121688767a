// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's counters as an observer outside the guest sees them.

use std::vec::Vec;

use proptest::prelude::*;

use super::{AMD_CYCLES, FULL, INTEL_CYCLES, config, guest};
use crate::guest::{Config, Counts, Filter, Vendor, View, VirtualPmu};
use crate::soft::Soft;
use crate::{Backend as _, Counter, Modes, Policy, What};

#[test]
fn counters_without_an_event_are_not_shown() {
    assert_eq!(guest(Vendor::Intel, Policy::Direct).views(5).count(), 0);
    assert_eq!(guest(Vendor::Amd, Policy::Direct).views(5).count(), 0);
}

#[test]
fn a_counter_is_shown_with_what_it_counts_its_value_now_and_its_overflows() {
    let mut intel = guest(Vendor::Intel, Policy::Direct);
    intel.write(0x4c1, FULL - 9, 0).expect("counter 0");
    intel.write(0x186, INTEL_CYCLES, 100).expect("its select");
    intel.write(0x38f, 1 | 1 << 32, 100).expect("the global control");
    intel.write(0x38d, 1, 100).expect("the fixed control: instructions, in the kernel");
    let views: Vec<View> = intel.views(120).collect();
    let cycles = View {
        counter: Counter::general(0),
        what: What::Cycles,
        modes: Modes::ALL,
        counts: Counts::Truly,
        value: 10,
        overflows: 1,
    };
    let instructions = View {
        counter: Counter::fixed(0),
        what: What::Instructions,
        modes: Modes { user: false, kernel: true },
        counts: Counts::Never,
        value: 0,
        overflows: 0,
    };
    assert_eq!(views, [cycles, instructions]);
}

#[test]
fn stopped_events_and_events_that_may_not_be_counted_are_distinguished() {
    let of = |filter| {
        let mut guest = VirtualPmu::new(&Config { filter, ..config(Vendor::Amd, Policy::Direct) }, Soft::new(0));
        guest.switch_in(Soft::new(0).counters(), 0);
        guest.write(0xc001_0200, AMD_CYCLES, 0).expect("a select");
        guest
    };
    let shown = |guest: &mut VirtualPmu<Soft>| guest.views(7).next().map(|view| (view.counts, view.value));
    let mut may = of(Filter::ALL);
    assert_eq!(shown(&mut may), Some((Counts::Truly, 7)));
    may.write(0xc000_0301, 0, 3).expect("the global control");
    assert_eq!(shown(&mut may), Some((Counts::Stopped, 3)), "stopped by the global control");
    assert_eq!(shown(&mut of(Filter::NONE)), Some((Counts::Never, 0)), "not on the list");
}

proptest! {
    #[test]
    fn a_sample_changes_nothing(values in prop::collection::vec((0_u64..8, any::<u64>()), 1..20), ticks in 0_u64..1 << 50) {
        let mut guest = guest(Vendor::Amd, Policy::Direct);
        for (register, value) in values {
            guest.write(0xc001_0200 + register as u32, value, 0).expect("AMD's registers take anything");
        }
        let before = guest.state(ticks);
        let seen = guest.views(ticks).count();
        prop_assert!(seen <= 6);
        prop_assert_eq!(guest.state(ticks), before);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! SPEC_CTRL and IBPB against a model of a CPU that runs the world switch's variants: two guests, two vCPUs each, and
//! the host.

use std::vec::Vec;

use proptest::prelude::*;

use super::models::{ALL, GENOA, MILAN, NAPLES, ROME, TURIN};
use crate::barrier::LastGuest;
use crate::switch::{Exit, VARIANTS, Variant, in_guest};
use crate::{Actions, Assessment, Cpu, Mode, assess};

/// A CPU's registers, and the guests that it has kept predictions of.
struct Model {
    assessment: Assessment,
    /// SPEC_CTRL as WRMSR and the host see it.
    spec_ctrl: u64,
    trained_by: Option<u32>,
    barriers: u32,
    last: LastGuest,
}

#[derive(Clone, Copy, Default)]
struct Vcpu {
    guest: u32,
    spec_ctrl: u64,
}

impl Model {
    fn new(cpu: &Cpu, mode: Mode) -> Self {
        let assessment = assess(cpu, mode);
        let spec_ctrl = assessment.actions.host_spec_ctrl();
        Self { assessment, spec_ctrl, trained_by: None, barriers: 0, last: LastGuest::new() }
    }

    fn load(&mut self, vcpu: &Vcpu) {
        if self.assessment.actions.contains(Actions::IBPB_BETWEEN_GUESTS) && self.last.follow(vcpu.guest) {
            (self.trained_by, self.barriers) = (None, self.barriers + 1);
        }
    }

    /// The world switch, step by step. Returns SPEC_CTRL as it is in effect in the guest.
    fn run(&mut self, vcpu: &Vcpu) -> u64 {
        let actions = self.assessment.actions;
        let is_virtual = self.assessment.cpu.has_virtual_spec_ctrl();
        let variant = Variant::choose(actions, vcpu.spec_ctrl, is_virtual, false);
        if variant.exchanges_spec_ctrl {
            self.spec_ctrl = in_guest(actions, vcpu.spec_ctrl);
        }
        let in_effect = if is_virtual { self.spec_ctrl | vcpu.spec_ctrl } else { self.spec_ctrl };
        self.trained_by = Some(vcpu.guest);
        if variant.exchanges_spec_ctrl {
            self.spec_ctrl = actions.host_spec_ctrl();
        }
        if variant.exit == Exit::Barrier {
            self.trained_by = None;
        }
        in_effect
    }
}

fn cpus() -> impl Strategy<Value = Cpu> {
    let restless = Cpu { sizes_ebx: MILAN.sizes_ebx & !(1 << 16), svm_edx: 0, extended_eax: 1 << 29, ..MILAN };
    let stable = Cpu { svm_edx: 0, extended_eax: 1 << 29, ..MILAN };
    prop_oneof![Just(ROME), Just(MILAN), Just(GENOA), Just(TURIN), Just(NAPLES), Just(restless), Just(stable)]
}

proptest! {
    #[test]
    fn no_value_of_spec_ctrl_leaks_and_each_change_of_guest_is_a_barrier(
        cpu in cpus(), is_off: bool,
        steps in prop::collection::vec((0_usize..4, prop::option::of(0_u64..256), 1_u32..4), 1..60),
    ) {
        let mut model = Model::new(&cpu, if is_off { Mode::Off } else { Mode::Auto });
        let actions = model.assessment.actions;
        let mut vcpus = [(7, 0), (7, 0), (9, 0), (9, 0)].map(|(guest, spec_ctrl)| Vcpu { guest, spec_ctrl });
        let mut changes = 0;
        let mut before = None;
        for (index, written, exits) in steps {
            let vcpu = &mut vcpus[index];
            model.load(vcpu);
            if before != Some(vcpu.guest) {
                changes += 1;
                let is_clean = model.trained_by.is_none() || is_off;
                prop_assert!(is_clean, "predictions of another guest");
            }
            before = Some(vcpu.guest);
            for _ in 0..exits {
                let in_effect = model.run(vcpu);
                prop_assert_eq!(in_effect & vcpu.spec_ctrl, vcpu.spec_ctrl, "what it has set is in effect");
                prop_assert_eq!(in_effect & !vcpu.spec_ctrl & !actions.host_spec_ctrl(), 0, "another's bit is in effect");
                prop_assert_eq!(model.spec_ctrl, actions.host_spec_ctrl(), "the host runs with its own value");
            }
            if let Some(value) = written {
                vcpu.spec_ctrl = value & cpu.spec_ctrl_bits();
            }
        }
        prop_assert_eq!(model.barriers, if actions.contains(Actions::IBPB_BETWEEN_GUESTS) { changes } else { 0 });
    }
}

#[test]
fn a_guest_that_sets_nothing_costs_no_write_of_spec_ctrl_but_where_ibrs_must_be_rewritten() {
    for cpu in ALL {
        let actions = assess(&cpu, Mode::Auto).actions;
        let variant = Variant::choose(actions, 0, cpu.has_virtual_spec_ctrl(), false);
        assert_eq!(variant.exchanges_spec_ctrl, actions.contains(Actions::IBRS_AT_EXIT));
    }
    assert!(Variant::choose(Actions::empty(), 4, false, false).exchanges_spec_ctrl);
    assert!(!Variant::choose(Actions::empty(), 4, true, false).exchanges_spec_ctrl);
}

#[test]
fn with_mitigations_off_the_switch_is_the_plain_one() {
    for cpu in ALL {
        let variant = Variant::choose(assess(&cpu, Mode::Off).actions, 0, false, false);
        assert_eq!((variant.index(), variant.exit), (0, Exit::Plain));
    }
}

#[test]
fn each_variant_has_a_place_of_its_own() {
    let mut places: Vec<usize> = Vec::new();
    for exit in [Exit::Plain, Exit::Cleared, Exit::Stuffed, Exit::Barrier] {
        for (exchanges_spec_ctrl, counts_time) in [(false, false), (false, true), (true, false), (true, true)] {
            places.push(Variant { exit, exchanges_spec_ctrl, counts_time }.index());
        }
    }
    assert!(places.iter().copied().eq(0..VARIANTS));
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random scripts, random states, and a plain model of the vectors.
use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::devices::GeneralProtection;

#[derive(Clone, Debug)]
enum Step {
    ReadMemory(u16),
    WriteMemory(u16, u32),
    ReadMsr(u32),
    WriteMsr(u32, u64),
    Base(u64),
    Deadline(u64),
    Accept(u8, u8, bool),
    Acknowledge,
    End,
    Expire,
    Performance(bool),
    TaskPriority(u8),
    Init,
    Wait(u64),
}

fn any_value() -> impl Strategy<Value = u32> {
    // Mostly what a guest would write: an enabled APIC, small counts, timer modes, commands.
    prop_oneof![
        Just(0x1ff),
        0u32..0x200,
        (0u32..4, 0u32..2, 0u32..0x100).prop_map(|(mode, mask, vector)| mode << 17 | mask << 16 | vector),
        (0u32..4, 0u32..8, any::<u8>()).prop_map(|(to, mode, vector)| to << 18 | mode << 8 | u32::from(vector)),
        any::<u32>(),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    let offset = prop_oneof![(0u16..0x41).prop_map(|register| register * 16), any::<u16>()];
    let msr = || prop_oneof![0x800u32..0x841, any::<u32>()];
    let base = (0u64..4).prop_map(|mode| 0xfee0_0000 | mode << 10);
    prop_oneof![
        2 => offset.clone().prop_map(Step::ReadMemory),
        8 => (offset, any_value()).prop_map(|(offset, value)| Step::WriteMemory(offset, value)),
        2 => msr().prop_map(Step::ReadMsr),
        8 => (msr(), any_value(), prop_oneof![4 => Just(0), 1 => any::<u32>()])
            .prop_map(|(msr, low, high)| Step::WriteMsr(msr, u64::from(high) << 32 | u64::from(low))),
        1 => prop_oneof![4 => base, 1 => any::<u64>()].prop_map(Step::Base),
        1 => prop_oneof![0u64..5000, any::<u64>()].prop_map(Step::Deadline),
        8 => (0u8..8, any::<u8>(), any::<bool>())
            .prop_map(|(mode, vector, is_level)| Step::Accept(mode, vector, is_level)),
        4 => Just(Step::Acknowledge),
        4 => Just(Step::End),
        2 => Just(Step::Expire),
        1 => any::<bool>().prop_map(Step::Performance),
        1 => any::<u8>().prop_map(Step::TaskPriority),
        1 => Just(Step::Init),
        2 => prop_oneof![0u64..3000, any::<u64>()].prop_map(Step::Wait),
    ]
}

/// A local APIC with a clock.
#[derive(Clone, Debug, PartialEq)]
struct Bench {
    lapic: Lapic,
    now: GuestTsc,
}

#[derive(Debug, PartialEq)]
enum Answer {
    Value(u32),
    Msr(Result<u64, GeneralProtection>),
    Action(Action),
    MsrAction(Result<Action, GeneralProtection>),
    Acceptance(Acceptance),
    Vector(Option<u8>),
    Expired(bool),
    Nothing,
}

impl Bench {
    fn take(&mut self, step: &Step) -> Answer {
        let (lapic, now) = (&mut self.lapic, self.now);
        match *step {
            Step::ReadMemory(offset) => Answer::Value(lapic.read_mmio(offset, now)),
            Step::WriteMemory(offset, value) => Answer::Action(lapic.write_mmio(offset, value, now)),
            Step::ReadMsr(msr) => Answer::Msr(lapic.read_msr(msr, now)),
            Step::WriteMsr(msr, value) => Answer::MsrAction(lapic.write_msr(msr, value, now)),
            Step::Base(value) => Answer::MsrAction(lapic.set_apic_base(value)),
            Step::Deadline(value) => Answer::Action(lapic.set_tsc_deadline(value, now)),
            Step::Accept(mode, vector, is_level) => {
                let mode = DeliveryMode::from_bits(mode).unwrap_or(DeliveryMode::Fixed);
                Answer::Acceptance(lapic.accept(&InterruptMessage { is_level, ..of_mode(mode, vector) }))
            }
            Step::Acknowledge => Answer::Vector(lapic.acknowledge()),
            Step::End => Answer::Action(lapic.end_of_interrupt()),
            Step::Expire => Answer::Expired(lapic.expire_timer(now)),
            Step::Performance(then_masks) => Answer::Acceptance(lapic.raise_performance_interrupt(then_masks)),
            Step::TaskPriority(class) => {
                lapic.set_task_priority(class);
                Answer::Nothing
            }
            Step::Init => {
                lapic.reset_to_init();
                Answer::Nothing
            }
            Step::Wait(ticks) => {
                self.now = GuestTsc(now.0.saturating_add(ticks));
                Answer::Nothing
            }
        }
    }

    /// Restores the state; the caches must come out alike.
    fn restored(&self) -> Self {
        Self { lapic: Lapic::from_state(self.lapic.state()).unwrap(), now: self.now }
    }
}

prop_compose! {
    fn any_state()(
        sets: [[u64; 4]; 3],
        words: [u32; 7],
        local_vectors: [u32; 6],
        mode in 0u64..4,
        timer_deadline: u64,
        interrupt_command: u64,
        task_priority: u8,
        tame: bool,
    ) -> LapicState {
        let [requested, in_service, trigger_mode] = sets.map(|[low, a, b, high]| {
            VectorSet([if tame { low & !0xffff } else { low }, a, b, high])
        });
        let mask = |word: u32, tamed: u32| if tame { word & tamed } else { word };
        LapicState {
            apic_base: 0xfee0_0000 | mode << 10,
            requested, in_service, trigger_mode, timer_deadline, task_priority,
            interrupt_command: if tame { interrupt_command & 0xff00_0000_000c_cfff } else { interrupt_command },
            id: words[0],
            spurious: mask(words[1], 0xff) | 0x100,
            local_vectors: local_vectors.map(|entry| mask(entry, 0x1_00ff)),
            initial_count: words[2],
            divide: mask(words[3], 0b1011),
            logical_destination: mask(words[4], 0),
            destination_format: u32::MAX,
            error_status: mask(words[5], 0xe0),
            errors_pending: mask(words[6], 0xe0),
        }
    }
}

proptest! {
    #[test]
    fn a_restored_lapic_behaves_the_same(
        x2: bool,
        before in prop::collection::vec(any_step(), 0..100),
        after in prop::collection::vec(any_step(), 0..100),
    ) {
        let mut bench = Bench { lapic: if x2 { x2apic(5) } else { xapic(5) }, now: NOW };
        for step in &before {
            bench.take(step);
            prop_assert_eq!(&bench.restored(), &bench);
        }
        let mut restored = bench.restored();
        for step in &after {
            prop_assert_eq!(bench.take(step), restored.take(step));
        }
    }

    #[test]
    fn a_hostile_state_is_refused_or_harmless(
        state in any_state(), steps in prop::collection::vec(any_step(), 0..64), now: u64,
    ) {
        if let Ok(lapic) = Lapic::from_state(state) {
            let mut bench = Bench { lapic, now: GuestTsc(now) };
            for step in &steps {
                bench.take(step);
                prop_assert_eq!(&bench.restored(), &bench);
            }
        }
    }

    #[test]
    fn a_time_that_goes_back_is_harmless(
        steps in prop::collection::vec((any_step(), any::<u64>()), 0..64),
    ) {
        let mut bench = Bench { lapic: xapic(5), now: NOW };
        for (step, now) in &steps {
            bench.now = GuestTsc(*now);
            bench.take(step);
            prop_assert_eq!(&bench.restored(), &bench);
        }
    }

    /// Requested and in service against ordered sets.
    #[test]
    fn vectors_behave_as_ordered_sets(steps in prop::collection::vec((0u8..3, 16u8..=255), 0..200)) {
        let (mut lapic, mut requested, mut in_service) = (xapic(0), BTreeSet::new(), Vec::new());
        for (step, vector) in steps {
            match step {
                0 => {
                    requested.insert(vector);
                    prop_assert_eq!(lapic.accept(&fixed(vector)), Acceptance::Requested);
                }
                1 => {
                    let service = in_service.last().map_or(0, |vector: &u8| vector >> 4);
                    let expected = requested.last().copied().filter(|vector| vector >> 4 > service);
                    if let Some(vector) = expected {
                        requested.remove(&vector);
                        in_service.push(vector);
                    }
                    prop_assert_eq!(lapic.acknowledge(), expected);
                }
                _ => {
                    in_service.pop();
                    prop_assert_eq!(lapic.end_of_interrupt(), Action::None);
                }
            }
            prop_assert_eq!(lapic.highest_in_service(), in_service.last().copied());
            let may_be_skipped = in_service.len() == 1 && requested.is_empty();
            prop_assert_eq!(lapic.eoi_may_be_skipped(), may_be_skipped);
        }
    }

    /// However late it is checked, a periodic timer is next due within one period, on its own grid.
    #[test]
    fn a_periodic_timer_keeps_its_grid(
        initial in 1u32.., divide in prop::sample::select(Vec::from([0u32, 1, 2, 3, 8, 9, 10, 11])), late in 0u64..1 << 60,
    ) {
        let mut lapic = xapic(0);
        for (offset, value) in [(0x320, 0x2_00ec), (0x3e0, divide), (0x380, initial)] {
            let _ = lapic.write_mmio(offset, value, NOW);
        }
        let period = lapic.timer_deadline().unwrap().0 - NOW.0;
        let now = GuestTsc(NOW.0 + period + late);
        prop_assert!(lapic.expire_timer(now));
        let next = lapic.timer_deadline().unwrap().0;
        prop_assert!(next > now.0 && next - now.0 <= period);
        prop_assert_eq!((next - NOW.0) % period, 0);
    }
}

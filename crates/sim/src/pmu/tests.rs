// SPDX-License-Identifier: MIT OR Apache-2.0
//! The drivers of `pmu` on the models: several users of one CPU's counters. Each must find exactly the events
//! that happened while it was allowed to count them.

mod alternating;
mod host;
mod intel_core;

use std::cell::RefCell;
use std::rc::Rc;
use std::vec::Vec;

use pmu::amd::{Amd, Side};
use pmu::guest::{Config, Filter, Vendor, VirtualPmu};
use pmu::not_yet_wired::driver::Intel;
use pmu::{Backend, Bank, Counter, CounterSet, Event, Modes, Msrs, Policy, SLOTS, What};
use proptest::prelude::*;

use super::{AmdPmu, Generation, IntelPmu, Run, VENDOR_EVENT};

const MASK: u64 = (1 << 48) - 1;

/// One model that several users reach.
struct Shared<T>(Rc<RefCell<T>>);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Msrs> Msrs for Shared<T> {
    fn read(&mut self, number: u32) -> u64 {
        self.0.borrow_mut().read(number)
    }

    fn write(&mut self, number: u32, value: u64) {
        self.0.borrow_mut().write(number, value);
    }
}

/// The models' interface for the tests.
trait Model: Msrs + Sized {
    type Driver: Backend;
    fn driver(shared: Shared<Self>, side: Side) -> Self::Driver;
    fn run(&mut self, run: &Run);
    fn is_clear(&self) -> bool;
    /// True if the driver keeps its host's counts and its guests' apart by itself.
    const KNOWS_SIDES: bool;
}

impl Model for IntelPmu {
    type Driver = Intel<Shared<Self>>;
    const KNOWS_SIDES: bool = false;

    fn driver(shared: Shared<Self>, _side: Side) -> Self::Driver {
        let (eax, ebx, edx, capabilities) = Self::CPUID;
        let description =
            pmu::not_yet_wired::driver::Description::from_cpuid(eax, ebx, edx, capabilities).expect("version 2");
        Intel::new(shared, description)
    }

    fn run(&mut self, run: &Run) {
        Self::run(self, run);
    }

    fn is_clear(&self) -> bool {
        Self::is_clear(self)
    }
}

impl Model for AmdPmu {
    type Driver = Amd<Shared<Self>>;
    const KNOWS_SIDES: bool = true;

    fn driver(shared: Shared<Self>, side: Side) -> Self::Driver {
        let (ecx, eax, ebx) = shared.0.borrow().cpuid();
        Amd::new(shared, pmu::amd::Description::from_cpuid(ecx, eax, ebx, 0x19), side)
    }

    fn run(&mut self, run: &Run) {
        Self::run(self, run);
    }

    fn is_clear(&self) -> bool {
        Self::is_clear(self)
    }
}

const EVENTS: [What; 4] = [
    What::Cycles,
    What::Instructions,
    What::ReferenceCycles,
    What::Vendor { select: VENDOR_EVENT.0, unit: VENDOR_EVENT.1 },
];

/// The next event.
#[derive(Clone, Debug)]
enum Step {
    Count {
        slot: usize,
        event: Option<(usize, u64)>,
    },
    Write {
        slot: usize,
        value: u64,
    },
    Run(Run),
    /// The other guest's turn.
    Switch,
}

fn step() -> impl Strategy<Value = Step> {
    let run = (0u64..1 << 40, 0u64..1 << 40, 0u64..1 << 40, 0u64..1 << 40, any::<bool>(), any::<bool>());
    let run = run.prop_map(|(cycles, reference_cycles, instructions, vendor, is_kernel, is_guest)| Run {
        cycles,
        reference_cycles,
        instructions,
        vendor,
        is_kernel,
        is_guest,
    });
    let value = prop_oneof![any::<u64>(), (0u64..1 << 40).prop_map(|left| MASK - left)];
    prop_oneof![
        (0usize..4, proptest::option::of((0usize..EVENTS.len(), 1u64..4)))
            .prop_map(|(slot, event)| Step::Count { slot, event }),
        (0usize..4, value).prop_map(|(slot, value)| Step::Write { slot, value }),
        run.prop_map(Step::Run),
        Just(Step::Switch),
    ]
}

fn event((what, modes): (usize, u64)) -> Event {
    Event { modes: Modes::from_bits(modes), ..Event::of(EVENTS[what]) }
}

/// A user, and what its slots must state.
struct User<B> {
    bank: Bank<B>,
    is_guest: bool,
    values: [u64; SLOTS],
    events: [Option<Event>; SLOTS],
    overflowed: u16,
}

impl<B: Backend> User<B> {
    fn new(backend: B, policy: Policy, is_guest: bool) -> Self {
        let bank = Bank::new(backend, policy);
        Self { bank, is_guest, values: [0; SLOTS], events: [None; SLOTS], overflowed: 0 }
    }

    fn count(&mut self, slot: usize, event: Option<Event>) {
        self.bank.count(slot, event.as_ref());
        self.events[slot] = event;
    }

    fn write(&mut self, slot: usize, value: u64) {
        self.bank.write(slot, value);
        self.values[slot] = value & MASK;
    }

    /// Adds a run to the expected values of the slots that are on counters.
    fn observe(&mut self, run: &Run, knows_sides: bool) {
        if knows_sides && run.is_guest != self.is_guest {
            return;
        }
        for slot in 0..SLOTS {
            let Some(event) = self.events[slot].filter(|_| self.bank.on_counters() & 1 << slot != 0) else { continue };
            let counts = if run.is_kernel { event.modes.kernel } else { event.modes.user };
            let more = match event.what {
                _ if !counts => 0,
                What::Cycles => run.cycles,
                What::Instructions => run.instructions,
                What::ReferenceCycles => run.reference_cycles,
                What::Vendor { .. } => run.vendor,
            };
            let sum = self.values[slot] + more;
            self.values[slot] = sum & MASK;
            self.overflowed |= u16::from(sum > MASK) << slot;
        }
    }

    fn check(&mut self) {
        for slot in 0..SLOTS {
            assert_eq!(self.bank.read(slot), self.values[slot], "slot {slot}: {:?}", self.events[slot]);
        }
    }
}

/// Two guests take turns, with all counters but one; that one is the host's all the time.
fn play<T: Model>(model: T, policy: Policy, steps: &[Step]) {
    let shared = Shared(Rc::new(RefCell::new(model)));
    let driver = |side| T::driver(shared.clone(), side);
    let mut guests = [true, true].map(|is_guest| User::new(driver(Side::Guest), policy, is_guest));
    let mut host = User::new(driver(Side::Host), Policy::Direct, false);
    let hosts = CounterSet::only(Counter::general(3));
    let rest = driver(Side::Host).counters().without(hosts);
    host.bank.switch_in(hosts);
    host.count(0, Some(Event::of(What::Cycles)));
    guests[0].bank.switch_in(rest);
    let mut turn = 0;
    for step in steps {
        let guest = &mut guests[turn];
        match step {
            Step::Count { slot, event: wanted } => guest.count(*slot, wanted.map(event)),
            Step::Write { slot, value } => guest.write(*slot, *value),
            Step::Run(run) => {
                shared.0.borrow_mut().run(run);
                guest.observe(run, T::KNOWS_SIDES);
                host.observe(run, T::KNOWS_SIDES);
            }
            Step::Switch => {
                guest.bank.switch_out();
                turn = 1 - turn;
                guests[turn].bank.switch_in(rest);
            }
        }
        guests.iter_mut().for_each(User::check);
        host.check();
    }
    guests[turn].bank.switch_out();
    host.bank.switch_out();
    guests.iter_mut().for_each(User::check);
    assert!(shared.0.borrow().is_clear(), "no user's values are left");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_count_is_lost_or_invented_on_intels_counters(steps in proptest::collection::vec(step(), 1..60)) {
        for policy in [Policy::Direct, Policy::Reprogram] {
            play(IntelPmu::default(), policy, &steps);
        }
    }

    #[test]
    fn no_count_is_lost_or_invented_on_amds_counters(steps in proptest::collection::vec(step(), 1..60)) {
        for generation in [Generation::Legacy, Generation::Extended, Generation::Global] {
            for policy in [Policy::Direct, Policy::Reprogram] {
                play(AmdPmu::new(generation), policy, &steps);
            }
        }
    }

    /// A profiler's way: the counter is put so far below zero, and put there again after each overflow.
    #[test]
    fn each_overflow_is_seen_once(period in 1u64..1 << 30, runs in proptest::collection::vec(0u64..1 << 31, 1..50)) {
        let count = |run: &mut dyn FnMut(u64) -> bool| runs.iter().filter(|&&cycles| run(cycles)).count();
        let mut left = period;
        let expected = count(&mut |cycles| {
            let is_over = cycles >= left;
            left = if is_over { period } else { left - cycles };
            is_over
        });
        let hits = |overflows: &mut dyn FnMut(u64) -> bool| count(overflows);
        let model = Rc::new(RefCell::new(IntelPmu::default()));
        let mut bank = sampling(IntelPmu::driver(Shared(model.clone()), Side::Guest), period);
        let found = hits(&mut |cycles| overflows(&mut bank, period, || model.borrow_mut().run(&cycles_of_guest(cycles))));
        prop_assert_eq!((found, model.borrow().interrupts), (expected, expected as u64));
        for generation in [Generation::Legacy, Generation::Extended, Generation::Global] {
            let model = Rc::new(RefCell::new(AmdPmu::new(generation)));
            let mut bank = sampling(AmdPmu::driver(Shared(model.clone()), Side::Guest), period);
            let found = hits(&mut |cycles| overflows(&mut bank, period, || model.borrow_mut().run(&cycles_of_guest(cycles))));
            prop_assert_eq!((found, model.borrow().interrupts), (expected, expected as u64));
        }
    }
}

fn cycles_of_guest(cycles: u64) -> Run {
    Run { cycles, is_guest: true, ..Run::default() }
}

fn sampling<B: Backend>(backend: B, period: u64) -> Bank<B> {
    let mut bank = Bank::new(backend, Policy::Direct);
    bank.switch_in(CounterSet(!0));
    bank.write(0, MASK + 1 - period);
    bank.count(0, Some(&Event::of(What::Cycles)));
    bank
}

fn overflows<B: Backend>(bank: &mut Bank<B>, period: u64, run: impl FnOnce()) -> bool {
    run();
    let is_over = bank.take_overflows() == 1;
    if is_over {
        bank.write(0, MASK + 1 - period);
    }
    is_over
}

/// A guest with the other vendor's registers: what both vendors count is counted, a number that only its own knows is
/// not.
#[test]
fn another_vendors_numbers_are_not_counted_as_ones_own() {
    let shared = Shared(Rc::new(RefCell::new(AmdPmu::new(Generation::Global))));
    let config = Config { vendor: Vendor::Intel, policy: Policy::Direct, filter: Filter::ALL };
    let mut guest = VirtualPmu::new(&config, AmdPmu::driver(shared.clone(), Side::Guest));
    guest.switch_in(CounterSet(!0), 0);
    let vendor = u64::from(VENDOR_EVENT.0) | u64::from(VENDOR_EVENT.1) << 8;
    for (register, event) in [(0x186, vendor), (0x187, 0xc0)] {
        guest.write(register, event | 0b11 << 16 | 1 << 22, 0).expect("a select");
    }
    shared.0.borrow_mut().run(&Run { instructions: 70, vendor: 5, is_guest: true, ..Run::default() });
    assert_eq!((guest.read(0x4c1, 0), guest.read(0x4c2, 0)), (Ok(0), Ok(70)));
}

/// More events than counters: each has had its share after as many turns as there are events, and states for how much
/// of it.
#[test]
fn events_take_turns_where_there_are_too_few_counters() {
    let model = Rc::new(RefCell::new(AmdPmu::new(Generation::Legacy)));
    let mut bank = Bank::new(AmdPmu::driver(Shared(model.clone()), Side::Host), Policy::Direct);
    bank.switch_in(CounterSet::first(2, 0));
    for slot in 0..SLOTS {
        bank.count(slot, Some(&Event::of(What::Cycles)));
    }
    let mut turns = [0u64; SLOTS];
    for _ in 0..SLOTS {
        let on = bank.on_counters();
        assert_eq!(on.count_ones(), 2);
        (0..SLOTS).filter(|slot| on & 1 << slot != 0).for_each(|slot| turns[slot] += 1);
        model.borrow_mut().run(&Run { cycles: 100, ..Run::default() });
        bank.rotate();
    }
    let counts: Vec<u64> = (0..SLOTS).map(|slot| bank.read(slot)).collect();
    assert_eq!(counts, turns.map(|turns| turns * 100));
    assert_eq!(turns, [2; SLOTS]);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests on the counters of a host's CPUs: two of them, on two CPUs, that are switched, moved and carried
//! over at any moment, with the host at work between. Each has a twin on `soft`, which counts only the guest's
//! time and is never interrupted: all that either can read, and every interrupt, must agree.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::vec::Vec;

use pmu::amd::{Amd, Description, Side, Unusable, probe};
use pmu::guest::{Config, Filter, Vendor};
use pmu::{Msrs, Policy, Registers, Source, VcpuCounters};
use proptest::prelude::*;

use super::MASK;
use crate::pmu::{AmdPmu, Generation, Run};

const CORES: usize = 2;
const GUESTS: usize = 2;
const GUEST_ONLY: u64 = 1 << 40;

thread_local! {
    static MODELS: RefCell<Vec<AmdPmu>> = const { RefCell::new(Vec::new()) };
    /// The CPU that executes.
    static CORE: Cell<usize> = const { Cell::new(0) };
    static FAULT: Cell<Option<Fault>> = const { Cell::new(None) };
}

/// Something wrong on purpose: a test that does not see it is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The CPU knows no sides.
    CountsTheHost,
    /// A guest is not switched out before another comes.
    LeavesItsEvents,
    /// One that moves loses its values.
    LosesValues,
    /// A carried guest finds its counters as after power-on.
    LosesItsState,
}

fn is(fault: Fault) -> bool {
    FAULT.get() == Some(fault)
}

fn on_core<T>(act: impl FnOnce(&mut AmdPmu) -> T) -> T {
    MODELS.with_borrow_mut(|models| act(&mut models[CORE.get()]))
}

fn read(number: u32) -> u64 {
    on_core(|model| model.read(number))
}

fn write(number: u32, value: u64) {
    let is_select = number >= 0xc001_0200 && number.is_multiple_of(2) || (0xc001_0000..0xc001_0004).contains(&number);
    let sideless = is_select && is(Fault::CountsTheHost);
    on_core(|model| model.write(number, if sideless { value & !GUEST_ONLY } else { value }));
}

const REGISTERS: Registers = Registers { read, write };

fn source(generation: Generation) -> Source {
    let (ecx, eax, ebx) = AmdPmu::new(generation).cpuid();
    Source::Amd(REGISTERS, Description::from_cpuid(ecx, eax, ebx, 0x19))
}

/// A guest, and its twin.
struct Guest {
    counters: VcpuCounters,
    twin: VcpuCounters,
    config: Config,
    generation: Generation,
    core: Option<usize>,
    ticks: u64,
}

impl Guest {
    fn new(config: Config, generation: Generation) -> Self {
        Self {
            counters: VcpuCounters::new(&config, source(generation)),
            twin: VcpuCounters::new(&config, Source::Soft),
            config,
            generation,
            core: None,
            ticks: 0,
        }
    }

    /// Enters a core as a vCPU does: only one that is not open is opened.
    fn enter(&mut self, core: usize) {
        CORE.set(core);
        self.core = Some(core);
        if !self.counters.bank().is_in() {
            self.counters.open(self.ticks);
        }
    }

    /// Only one that uses counters is closed.
    fn leave(&mut self) {
        let Some(core) = self.core.take() else { return };
        CORE.set(core);
        if is(Fault::LosesValues) {
            (0xc001_0004..0xc001_0008).for_each(|number| write(number, 0));
        }
        if self.counters.bank().is_used() && !is(Fault::LeavesItsEvents) {
            self.counters.close(self.ticks);
        }
    }

    fn write(&mut self, number: u32, value: u64) {
        let ticks = self.ticks;
        let results = [&mut self.counters, &mut self.twin].map(|counters| counters.write(number, value, ticks));
        assert_eq!(results[0], results[1], "{number:#x} := {value:#x}");
    }

    fn run(&mut self, ticks: u64, is_kernel: bool) {
        self.ticks += ticks;
        on_core(|model| model.run(&busy(ticks, is_kernel, true)));
    }

    /// Hands only its state over to another image, perhaps by way of one on a host without counters.
    fn carry(&mut self, by_soft: bool) {
        let mut state = self.counters.state(self.ticks);
        assert_eq!(state, self.twin.state(self.ticks));
        if by_soft {
            let between = VcpuCounters::new(&self.config, Source::Soft).restored(&state).expect("it was reached");
            state = between.state(self.ticks);
        }
        let fresh = VcpuCounters::new(&self.config, source(self.generation));
        self.counters = if is(Fault::LosesItsState) { fresh } else { fresh.restored(&state).expect("so was this") };
    }

    fn check(&mut self) {
        if let Some(core) = self.core {
            CORE.set(core);
        }
        let raised = on_core(|model| core::mem::take(&mut model.interrupts));
        let ticks = self.ticks;
        for number in readable(self.config.vendor) {
            let results = [&mut self.counters, &mut self.twin].map(|counters| counters.read(number, ticks));
            assert_eq!(results[0], results[1], "{number:#x}");
        }
        let interrupts = [&mut self.counters, &mut self.twin].map(|counters| counters.take_interrupt());
        assert_eq!(interrupts[0], interrupts[1]);
        assert!(!interrupts[0] || raised > 0, "the host would not have known");
    }
}

fn busy(ticks: u64, is_kernel: bool, is_guest: bool) -> Run {
    Run { cycles: ticks, reference_cycles: ticks, instructions: ticks, vendor: ticks, is_kernel, is_guest }
}

fn readable(vendor: Vendor) -> Vec<u32> {
    match vendor {
        Vendor::Amd => (0xc001_0200..0xc001_020c).chain(0xc000_0300..0xc000_0302).collect(),
        Vendor::Intel => (0x186..0x18a).chain(0x4c1..0x4c5).chain([0x30a, 0x38d, 0x38e, 0x38f]).collect(),
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write(u32, u64),
    Run(u64, bool),
    /// The host works where the guest is.
    Host(u64),
    /// A guest comes to a CPU, from wherever it is.
    Enter(usize, usize),
    Leave,
    Carry(bool),
}

/// Returns what both kinds of counters count: cycles, in all modes. Uses the first four counters, which all of AMD's
/// CPUs have.
fn step(vendor: Vendor) -> impl Strategy<Value = Step> {
    let (selects, counters, stride, control, clear, events) = match vendor {
        Vendor::Amd => (0xc001_0200, 0xc001_0201, 2, 0xc000_0301, 0xc000_0302, [0x76, 0x1_0000_0120]),
        Vendor::Intel => (0x186, 0x4c1, 1, 0x38f, 0x390, [0x3c, 0x3c]),
    };
    let on = 0b11 << 16 | 1 << 22;
    let select = prop_oneof![
        3 => (prop::sample::select(events.to_vec()), any::<bool>())
            .prop_map(move |(event, interrupts)| event | on | u64::from(interrupts) << 20),
        1 => Just(0x76 | 0b11 << 16),
        1 => Just(0),
    ];
    // Without global registers an overflow is seen of a counter that was above the middle.
    let above = any::<u64>().prop_map(|value| value & MASK | 1 << 47);
    let value = prop_oneof![above, 0u64..1 << 20, (0u64..1 << 21).prop_map(|left| MASK - left)];
    let fixed = if vendor == Vendor::Intel { 1 << 33 } else { 0 };
    prop_oneof![
        4 => (0u32..3, select).prop_map(move |(at, value)| Step::Write(selects + stride * at, value)),
        3 => (0u32..3, value).prop_map(move |(at, value)| Step::Write(counters + stride * at, value)),
        2 => (0u64..16, any::<bool>())
            .prop_map(move |(value, is_on)| Step::Write(control, value | if is_on { fixed } else { 0 })),
        1 => (0u64..16).prop_map(move |value| Step::Write(clear, value)),
        1 => any::<bool>().prop_map(move |is_on| match vendor {
            Vendor::Amd => Step::Write(selects, 0),
            Vendor::Intel => Step::Write(0x38d, if is_on { 0xb0 } else { 0 }),
        }),
        6 => (0u64..1 << 20, any::<bool>()).prop_map(|(ticks, is_kernel)| Step::Run(ticks, is_kernel)),
        2 => (1u64..1 << 20).prop_map(Step::Host),
        4 => (0..GUESTS, 0..CORES).prop_map(|(guest, core)| Step::Enter(guest, core)),
        2 => Just(Step::Leave),
        2 => any::<bool>().prop_map(Step::Carry),
    ]
}

fn play(config: Config, generation: Generation, steps: &[Step]) {
    MODELS.with_borrow_mut(|models| *models = std::vec![AmdPmu::new(generation); CORES]);
    let mut guests: [Guest; GUESTS] = std::array::from_fn(|_| Guest::new(config, generation));
    let mut turn = 0;
    guests[turn].enter(0);
    for step in steps {
        match *step {
            Step::Enter(next, core) => {
                guests.iter_mut().enumerate().for_each(|(at, guest)| {
                    if at == next || guest.core == Some(core) {
                        guest.leave();
                    }
                });
                turn = next;
                guests[turn].enter(core);
            }
            _ if guests[turn].core.is_none() => {
                if let Step::Carry(by_soft) = *step {
                    guests[turn].carry(by_soft);
                }
            }
            Step::Write(number, value) => guests[turn].write(number, value),
            Step::Run(ticks, is_kernel) => guests[turn].run(ticks, is_kernel),
            Step::Host(ticks) => on_core(|model| model.run(&busy(ticks, true, false))),
            Step::Leave => guests[turn].leave(),
            Step::Carry(_) => {}
        }
        guests[turn].check();
    }
    guests.iter_mut().for_each(Guest::leave);
    for core in 0..CORES {
        CORE.set(core);
        assert!(on_core(|model| model.is_clear()), "no user's values are left");
    }
}

fn config(vendor: Vendor, policy: Policy) -> Config {
    Config { vendor, policy, filter: Filter::ALL }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn amds_registers_on_a_cpus_counters_read_as_on_the_guests_time(
        steps in prop::collection::vec(step(Vendor::Amd), 1..60),
    ) {
        for generation in [Generation::Legacy, Generation::Extended, Generation::Global] {
            for policy in [Policy::Direct, Policy::Reprogram] {
                play(config(Vendor::Amd, policy), generation, &steps);
            }
        }
    }

    #[test]
    fn intels_registers_do_so_too(steps in prop::collection::vec(step(Vendor::Intel), 1..60)) {
        for generation in [Generation::Legacy, Generation::Extended, Generation::Global] {
            for policy in [Policy::Direct, Policy::Reprogram] {
                play(config(Vendor::Intel, policy), generation, &steps);
            }
        }
    }
}

/// The tests above see each of these.
#[test]
fn a_host_that_does_something_wrong_is_found_out() {
    use Step::{Carry, Enter, Host, Leave, Run, Write};
    let begin = [Write(0xc001_0201, MASK - 5000), Write(0xc001_0200, 0x76 | 0b11 << 16 | 1 << 20 | 1 << 22)];
    let then = [Run(1000, true), Host(700), Run(1000, false), Leave, Enter(1, 0), Run(300, true), Enter(0, 1), Leave];
    let last = [Carry(true), Enter(0, 1), Run(4000, true), Leave];
    let steps = [&begin[..], &then, &last].concat();
    let faults = [Fault::CountsTheHost, Fault::LeavesItsEvents, Fault::LosesValues, Fault::LosesItsState];
    for generation in [Generation::Legacy, Generation::Extended, Generation::Global] {
        for fault in [None].into_iter().chain(faults.map(Some)) {
            FAULT.set(fault);
            let played =
                catch_unwind(AssertUnwindSafe(|| play(config(Vendor::Amd, Policy::Direct), generation, &steps)));
            FAULT.set(None);
            assert_eq!(played.is_err(), fault.is_some(), "{fault:?}, {generation:?}");
        }
    }
}

/// Registers of a CPU that is not what it reports.
struct Odd<'a> {
    model: &'a RefCell<AmdPmu>,
    /// Bits of a register that it keeps.
    keeps: fn(u32) -> u64,
}

impl Msrs for Odd<'_> {
    fn read(&mut self, number: u32) -> u64 {
        self.model.borrow_mut().read(number) & (self.keeps)(number)
    }

    fn write(&mut self, number: u32, value: u64) {
        self.model.borrow_mut().write(number, value & (self.keeps)(number));
    }
}

fn is_counter(number: u32) -> bool {
    number >= 0xc001_0200 && !number.is_multiple_of(2) || (0xc001_0004..0xc001_0008).contains(&number)
}

fn probed(generation: Generation, keeps: fn(u32) -> u64, host_cycles: u64, guest_cycles: u64) -> Result<(), Unusable> {
    let model = RefCell::new(AmdPmu::new(generation));
    let (ecx, eax, ebx) = model.borrow().cpuid();
    let description = Description::from_cpuid(ecx, eax, ebx, 0x19);
    let wait = || {
        model.borrow_mut().run(&busy(host_cycles, true, false));
        model.borrow_mut().run(&busy(guest_cycles, true, true));
    };
    let found = probe(&mut Odd { model: &model, keeps }, &description, wait);
    assert!(model.borrow().is_clear(), "as it was");
    found
}

#[test]
fn counters_are_used_only_if_they_count_and_distinguish_guests_from_the_host() {
    for generation in [Generation::Legacy, Generation::Extended, Generation::Global] {
        let probed = |keeps, host, guest| probed(generation, keeps, host, guest);
        assert_eq!(probed(|_| !0, 100, 0), Ok(()));
        assert_eq!(probed(|_| 0, 100, 0), Err(Unusable::NotWritable), "an emulator without counters");
        let no_sides = |number| if is_counter(number) { !0 } else { !GUEST_ONLY };
        assert_eq!(probed(no_sides, 100, 0), Err(Unusable::NotWritable), "a hypervisor below that leaves the bit out");
        assert_eq!(probed(|_| !0, 0, 0), Err(Unusable::Still));
        assert_eq!(probed(|_| !0, 100, 100), Err(Unusable::Mixed));
    }
}

/// In an image on trial a guest of the image before may have the very counter.
#[test]
fn a_counter_that_is_tried_is_its_users_again_afterwards() {
    let model = RefCell::new(AmdPmu::new(Generation::Global));
    let (ecx, eax, ebx) = model.borrow().cpuid();
    let description = Description::from_cpuid(ecx, eax, ebx, 0x19);
    for (number, value) in
        [(0xc001_0200, 0x76 | 0b11 << 16 | 1 << 22 | GUEST_ONLY), (0xc001_0201, 77), (0xc000_0301, 5)]
    {
        model.borrow_mut().write(number, value);
    }
    let before = model.borrow().clone();
    let wait = || model.borrow_mut().run(&busy(100, true, false));
    assert_eq!(probe(&mut Odd { model: &model, keeps: |_| !0 }, &description, wait), Ok(()));
    assert_eq!(*model.borrow(), before);
    assert!(!before.is_clear());
}

/// Values that firmware or an image before has left count for no user.
#[test]
fn counters_are_reset_before_a_guest_has_them() {
    for generation in [Generation::Legacy, Generation::Extended, Generation::Global] {
        MODELS.with_borrow_mut(|models| *models = std::vec![AmdPmu::new(generation)]);
        CORE.set(0);
        let Source::Amd(_, description) = source(generation) else { unreachable!() };
        let (select, counter) =
            if description.is_extended { (0xc001_0200, 0xc001_0201) } else { (0xc001_0000, 0xc001_0004) };
        write(select, 0x76 | 0b11 << 16 | 1 << 22);
        write(counter, 77);
        Amd::new(REGISTERS, description, Side::Guest).reset();
        assert!(on_core(|model| model.is_clear()), "{generation:?}");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two guests and the host take turns at one CPU's counters, PEBS, branch records and metrics; each has a twin
//! with a CPU to itself, that does the same and nothing else. All that either can read must agree.

use std::vec::Vec;

use pmu::not_yet_wired::driver::Intel;
use pmu::not_yet_wired::pebs::ds;
use pmu::{Bank, Counter, CounterSet, Event, Policy, What};
use proptest::prelude::*;

use super::intel_core::{AREA, BUFFER, Forbidden, Guest, core};
use super::{MASK, Shared};
use crate::pmu::{Activity, Branch, IntelCore, IntelPmu, Kind, Run};

/// Registers that a guest may write and read.
const REGISTERS: &[u32] = &[
    0x186, 0x187, 0x188, 0x4c1, 0x4c2, 0x309, 0x30a, 0x38d, 0x38f, 0x390, 0x38e, 0x3f1, 0x3f2, 0x600, 0x14ce, 0x14cf,
    0x1500, 0x1507, 0x1601, 0x1203, 0x30c, 0x345,
];
const METRICS: u32 = 0x329;
const BUFFER_BYTES: u64 = 4096;

#[derive(Clone, Debug)]
enum Step {
    Write(u32, u64),
    /// The guest's own memory.
    Store(u64, u64),
    ResetShares,
    Run(Work),
    /// The host works between two entries of the same guest.
    Host,
    Switch(usize),
}

#[derive(Clone, Debug)]
struct Work {
    run: Run,
    address: u64,
    branches: Vec<(u64, Kind)>,
    slots: [u64; 8],
}

fn value(number: u32) -> BoxedStrategy<u64> {
    let cycles = 0x3c | 1 << 22 | 1 << 20;
    match number {
        0x186..=0x188 => (0u64..4, any::<bool>(), any::<bool>())
            .prop_map(move |(modes, is_adaptive, is_other)| {
                let event = if is_other { cycles & !0xff | 0xc0 } else { cycles };
                event | modes << 16 | u64::from(is_adaptive) << 34
            })
            .boxed(),
        0x4c1 | 0x4c2 | 0x309 | 0x30a => (0u64..2000).prop_map(|left| MASK - left).boxed(),
        0x38d => (any::<u64>()).prop_map(|bits| bits & 0x111_0000_3bbb).boxed(),
        0x38f => prop_oneof![
            Just(0xf | 0b1111 << 32 | 1 << 48),
            any::<u64>().prop_map(|bits| bits & (0xf | 0xf << 32 | 1 << 48))
        ]
        .boxed(),
        0x390 => Just(7 << 32 | 0xf | 1 << 62).boxed(),
        0x3f1 => any::<u64>().prop_map(|bits| bits & (0xf | 7 << 32)).boxed(),
        0x3f2 => any::<u64>().prop_map(|bits| bits & 0x300_000f).boxed(),
        0x600 => prop_oneof![4 => Just(AREA), 1 => Just(0u64), 1 => any::<u64>()].boxed(),
        0x14ce => prop_oneof![Just(0x7f_0007), Just(0x20_0005), Just(0u64), any::<u64>()].boxed(),
        0x14cf => prop_oneof![Just(8u64), Just(16), Just(32), Just(24)].boxed(),
        _ => any::<u64>().boxed(),
    }
}

fn work() -> impl Strategy<Value = Work> {
    let kind = prop_oneof![Just(Kind::Conditional), Just(Kind::Return), Just(Kind::IndirectCall)];
    let counts = (0u64..4000, 0u64..4000, 0u64..4000, any::<bool>());
    (counts, 1u64..1 << 40, prop::collection::vec((1u64..1 << 40, kind), 0..6), prop::array::uniform8(0u64..500))
        .prop_map(|((cycles, instructions, reference_cycles, is_kernel), address, branches, slots)| Work {
            run: Run { cycles, instructions, reference_cycles, is_kernel, ..Run::default() },
            address,
            branches,
            slots,
        })
}

fn step() -> impl Strategy<Value = Step> {
    let write = prop::sample::select(REGISTERS).prop_flat_map(|number| (Just(number), value(number)));
    let field =
        prop::sample::select(vec![ds::INDEX, ds::MAXIMUM, ds::THRESHOLD, ds::GENERAL_RESET, ds::FIXED_RESET + 8]);
    let content = prop_oneof![
        (0..BUFFER_BYTES / 8).prop_map(|at| BUFFER + 8 * at),
        (1u64..2000).prop_map(|left| MASK - left),
        any::<u64>()
    ];
    prop_oneof![
        6 => write.prop_map(|(number, value)| Step::Write(number, value)),
        2 => (field, content).prop_map(|(field, value)| Step::Store(AREA + field, value)),
        1 => Just(Step::ResetShares),
        5 => work().prop_map(Step::Run),
        1 => Just(Step::Host),
        3 => (0usize..3).prop_map(Step::Switch),
    ]
}

/// One user twice: beside others, and alone.
struct User {
    beside: Guest,
    alone: Guest,
}

impl User {
    fn new(policy: Policy, shared: &Shared<IntelCore>, available: CounterSet) -> Self {
        let new = |core: &Shared<IntelCore>| Guest::with_policy(policy, core, BUFFER_BYTES, BUFFER_BYTES / 2);
        let mut user = Self { beside: new(shared), alone: new(&core()) };
        user.alone.driver.switch_in(available);
        user
    }

    fn both(&mut self, mut step: impl FnMut(&mut Guest)) {
        step(&mut self.beside);
        step(&mut self.alone);
    }

    fn write(&mut self, number: u32, value: u64) {
        let results = [&mut self.beside, &mut self.alone].map(|guest| guest.driver.write(number, value));
        assert_eq!(results[0], results[1], "{number:#x} := {value:#x}");
    }

    fn check(&mut self) {
        for &number in REGISTERS {
            assert_eq!(self.beside.driver.read(number), self.alone.driver.read(number), "{number:#x}");
        }
        assert_eq!(self.beside.driver.read(METRICS), self.alone.driver.read(METRICS));
        assert_eq!(self.beside.interrupts, self.alone.interrupts);
        assert_eq!(self.beside.memory, self.alone.memory);
    }
}

fn host(core: &Shared<IntelCore>) -> Bank<Intel<Shared<IntelCore>>> {
    let (eax, ebx, edx, capabilities) = IntelPmu::CPUID;
    let description =
        pmu::not_yet_wired::driver::Description::from_cpuid(eax, ebx, edx, capabilities).expect("version 2");
    let mut bank = Bank::new(Intel::new(core.clone(), description), Policy::Direct);
    bank.switch_in(CounterSet::only(Counter::general(3)));
    bank.write(0, MASK - 3000);
    bank.count(0, Some(&Event::of(What::Cycles)));
    bank
}

/// The last counter is the host's all the time, and near its overflow: a guest may state that it writes records.
fn play(policy: Policy, steps: &[Step]) {
    let shared = core();
    let mut host = host(&shared);
    let available = CounterSet::first(3, 3);
    let mut users: [User; 3] = std::array::from_fn(|_| User::new(policy, &shared, available));
    let mut turn = 0;
    users[turn].beside.driver.switch_in(available);
    let mut counted = MASK - 3000;
    for step in steps {
        let user = &mut users[turn];
        match step {
            Step::Write(number, value) => user.write(*number, *value),
            Step::Store(address, value) => user.both(|guest| _ = guest.memory.0.insert(*address, *value)),
            Step::ResetShares => [0x30c, METRICS].into_iter().for_each(|number| user.write(number, 0)),
            Step::Run(work) => {
                let branch = |&(from, kind)| Branch { from, to: from + 1, kind, cycles: 3 };
                let branches: Vec<Branch> = work.branches.iter().map(branch).collect();
                let Work { run, address, slots, .. } = *work;
                user.both(|guest| guest.run(&Activity { run, address, stamp: address, branches: &branches, slots }));
                counted += work.run.cycles;
            }
            Step::Host => {
                let run = Run { cycles: 1000, instructions: 1000, is_kernel: true, ..Run::default() };
                let branches = &[Branch { from: 0xbad, to: 0xbad, kind: Kind::Return, cycles: 0 }];
                let activity = Activity { run, address: 0xbad, stamp: 0xbad, branches, slots: [77; 8] };
                shared.0.borrow_mut().run(&activity, &mut Forbidden);
                counted += 1000;
            }
            Step::Switch(next) => {
                user.beside.driver.switch_out();
                turn = *next;
                users[turn].beside.driver.switch_in(available);
            }
        }
        users.iter_mut().for_each(User::check);
        assert_eq!(host.read(0), counted & MASK);
        if host.take_overflows() == 1 {
            counted = MASK - 3000;
            host.write(0, counted);
        }
    }
    users[turn].beside.driver.switch_out();
    users.iter_mut().for_each(User::check);
    host.switch_out();
    assert!(shared.0.borrow().is_clear(), "no user's values are left");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn each_finds_what_it_would_find_alone(steps in prop::collection::vec(step(), 1..80)) {
        for policy in [Policy::Direct, Policy::Reprogram] {
            play(policy, &steps);
        }
    }
}

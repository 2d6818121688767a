// SPDX-License-Identifier: MIT OR Apache-2.0
//! PEBS, last branch records and top-down metrics, as a guest finds them.

mod last_branches;
mod metrics;
mod precise;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::vec::Vec;

use pmu::guest::{Config, Filter, Refused, Vendor};
use pmu::not_yet_wired::driver::Intel;
use pmu::not_yet_wired::guest::{Capabilities, IntelGuest};
use pmu::not_yet_wired::pebs::{Enumeration, Group, ds, record_bytes};
use pmu::{Bank, Counter, CounterSet, Event, Policy, What};

use super::{MASK, Shared};
use crate::pmu::{Activity, Branch, IntelCore, IntelPmu, Kind, Linear, Run};

pub(super) const AREA: u64 = 0x7000;
pub(super) const BUFFER: u64 = 0x1_0000;
const SELECT: u32 = 0x186;
const COUNTER: u32 = 0x4c1;
const CONTROL: u32 = 0x38f;
const STATUS: u32 = 0x38e;
const CLEAR: u32 = 0x390;
const PEBS_ENABLE: u32 = 0x3f1;
const DATA_CONFIG: u32 = 0x3f2;
const DS_AREA: u32 = 0x600;
const LBR_CONTROL: u32 = 0x14ce;
const LBR_DEPTH: u32 = 0x14cf;
const LBR_FROM: u32 = 0x1500;
const SLOTS: u32 = 0x30c;
const METRICS: u32 = 0x329;
const FIXED_CONTROL: u32 = 0x38d;
const CYCLES: u64 = 0x3c | 0b11 << 16 | 1 << 20 | 1 << 22;

/// Memory by address; what has not been written is not there.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Memory(pub BTreeMap<u64, u64>);

impl Linear for Memory {
    fn read(&mut self, address: u64) -> Option<u64> {
        self.0.get(&address).copied()
    }

    fn write(&mut self, address: u64, value: u64) -> Option<()> {
        *self.0.get_mut(&address)? = value;
        Some(())
    }
}

/// The host's: no record may go there.
pub(super) struct Forbidden;

impl Linear for Forbidden {
    fn read(&mut self, address: u64) -> Option<u64> {
        panic!("the CPU reads {address:#x} of the host's memory")
    }

    fn write(&mut self, address: u64, _value: u64) -> Option<()> {
        panic!("the CPU writes {address:#x} of the host's memory")
    }
}

/// A guest with its memory.
pub(super) struct Guest {
    pub driver: IntelGuest<Shared<IntelCore>>,
    core: Shared<IntelCore>,
    pub memory: Memory,
    pub interrupts: usize,
}

pub(super) fn core() -> Shared<IntelCore> {
    Shared(Rc::new(RefCell::new(IntelCore::default())))
}

fn capabilities() -> Capabilities {
    let (leaf_1_ecx, leaf_1_edx, leaf_a_edx, capabilities) = IntelCore::CPUID;
    let (leaf_7_edx, eax, ebx) = IntelCore::LBR_CPUID;
    let enumeration =
        Enumeration { leaf_1_ecx, leaf_1_edx, capabilities, misc_enable: 0, survives_nested_faults: true };
    Capabilities {
        pebs: pmu::not_yet_wired::pebs::Description::find(&enumeration, CounterSet::first(4, 3), 48, true),
        lbr: pmu::not_yet_wired::lbr::Description::from_cpuid(leaf_7_edx, eax, ebx),
        topdown: pmu::not_yet_wired::topdown::is_present(leaf_a_edx, capabilities),
    }
}

fn description() -> pmu::not_yet_wired::driver::Description {
    let (eax, ebx, edx, capabilities) = IntelPmu::CPUID;
    pmu::not_yet_wired::driver::Description::from_cpuid(eax, ebx, edx, capabilities).expect("version 2")
}

fn driver(core: &Shared<IntelCore>, policy: Policy, has: &Capabilities) -> IntelGuest<Shared<IntelCore>> {
    let config = Config { vendor: Vendor::Intel, policy, filter: Filter::ALL };
    IntelGuest::new(&config, core.clone(), description(), has)
}

impl Guest {
    /// Creates one with a buffer of `buffer_bytes` bytes that interrupts from `threshold` on.
    pub fn new(core: &Shared<IntelCore>, buffer_bytes: u64, threshold: u64) -> Self {
        Self::with_policy(Policy::Direct, core, buffer_bytes, threshold)
    }

    /// Creates the same, with any policy.
    pub fn with_policy(policy: Policy, core: &Shared<IntelCore>, buffer_bytes: u64, threshold: u64) -> Self {
        let mut memory = Memory((0..0x100).step_by(8).map(|offset| (AREA + offset, 0)).collect());
        memory.0.extend((0..buffer_bytes).step_by(8).map(|offset| (BUFFER + offset, 0)));
        let fields = [(ds::BASE, 0), (ds::INDEX, 0), (ds::MAXIMUM, buffer_bytes), (ds::THRESHOLD, threshold)];
        fields.into_iter().for_each(|(field, offset)| _ = memory.0.insert(AREA + field, BUFFER + offset));
        Self { driver: driver(core, policy, &capabilities()), core: core.clone(), memory, interrupts: 0 }
    }

    /// Creates one with a first counter that counts cycles, with a record each `period` of them.
    fn sampling(core: &Shared<IntelCore>, buffer_bytes: u64, threshold: u64, period: u64) -> Self {
        Self::sampling_on(CounterSet(!0), core, (buffer_bytes, threshold, period))
    }

    /// Returns the same with these counters.
    fn sampling_on(
        available: CounterSet,
        core: &Shared<IntelCore>,
        (bytes, threshold, period): (u64, u64, u64),
    ) -> Self {
        let mut guest = Self::new(core, bytes, threshold);
        guest.memory.0.insert(AREA + ds::GENERAL_RESET, MASK + 1 - period);
        guest.driver.switch_in(available);
        let writes = [(COUNTER, MASK + 1 - period), (DS_AREA, AREA), (PEBS_ENABLE, 1), (SELECT, CYCLES)];
        guest.writes(&writes);
        guest
    }

    fn writes(&mut self, writes: &[(u32, u64)]) {
        for &(number, value) in writes {
            assert_eq!(self.driver.write(number, value), Ok(()), "{number:#x} := {value:#x}");
        }
    }

    /// It runs, and is left again.
    pub fn run(&mut self, activity: &Activity<'_>) {
        self.driver.enter();
        let run = Run { is_guest: true, ..activity.run };
        self.core.0.borrow_mut().run(&Activity { run, ..*activity }, &mut self.memory);
        self.driver.leave();
        self.interrupts += usize::from(self.driver.take_interrupt());
    }

    fn cycles(&mut self, cycles: u64, address: u64) {
        self.run(&Activity { run: Run { cycles, ..Run::default() }, address, stamp: address, ..Activity::default() });
    }

    fn index(&self) -> u64 {
        self.memory.0[&(AREA + ds::INDEX)] - BUFFER
    }

    /// Returns the addresses in its records, which are all basic ones of its first counter.
    fn records(&self) -> Vec<u64> {
        let word = |at: u64| self.memory.0[&(BUFFER + at)];
        let records = (0..self.index()).step_by(32);
        records
            .map(|at| {
                assert_eq!((word(at), word(at + 16), word(at + 24)), (32 << 48, 1, word(at + 8)));
                word(at + 8)
            })
            .collect()
    }
}

fn branches(count: u64, from: u64) -> Vec<Branch> {
    (0..count)
        .map(|at| Branch { from: from + at, to: from + 0x1000 + at, kind: Kind::Return, cycles: at as u16 })
        .collect()
}

fn host_work() -> Activity<'static> {
    let run =
        Run { cycles: 1 << 20, instructions: 1 << 20, reference_cycles: 1 << 20, is_kernel: true, ..Run::default() };
    let branches = &[Branch { from: 0xbad, to: 0xbad, kind: Kind::Other, cycles: 0 }];
    Activity { run, branches, address: 0xbad, stamp: 0xbad, slots: [1000; 8] }
}

#[test]
fn reserved_bits_and_what_is_not_there_are_refused() {
    let core = core();
    let mut guest = Guest::new(&core, 0, 0);
    guest.driver.switch_in(CounterSet(!0));
    let reserved = [
        (PEBS_ENABLE, 1 << 4),
        (PEBS_ENABLE, 1 << 62),
        (DATA_CONFIG, 1 << 4),
        (DS_AREA, 1 << 47),
        (LBR_CONTROL, 1 << 3),
        (LBR_CONTROL, 1 << 23),
        (LBR_DEPTH, 0),
        (LBR_DEPTH, 12),
        (LBR_DEPTH, 24),
        (LBR_DEPTH, 40),
        (LBR_DEPTH, u64::MAX),
        (0x1200, 1 << 16),
        (SLOTS, 1 << 48),
        (CONTROL, 1 << 36),
        (CONTROL, 1 << 49),
        (FIXED_CONTROL, 1 << 14),
        (FIXED_CONTROL, 1 << 44),
        (SELECT, CYCLES | 1 << 35),
        (CLEAR, 1 << 61),
        (0x1520, 0),
        (0x345, 0),
    ];
    for (number, value) in reserved {
        let before = guest.driver.read(number);
        assert_eq!(guest.driver.write(number, value), Err(Refused), "{number:#x} := {value:#x}");
        assert_eq!(guest.driver.read(number), before);
    }
    assert_eq!(guest.driver.read(0x345), Ok(1 << 13 | 0x3f | 1 << 6 | 1 << 7 | 4 << 8 | 1 << 14 | 1 << 15));
    let mut without = driver(&core, Policy::Direct, &Capabilities::default());
    without.switch_in(CounterSet(!0));
    for number in [PEBS_ENABLE, DATA_CONFIG, DS_AREA, LBR_CONTROL, LBR_DEPTH, LBR_FROM, SLOTS, METRICS] {
        assert_eq!((without.read(number), without.write(number, 0)), (Err(Refused), Err(Refused)), "{number:#x}");
    }
    assert_eq!(without.write(CONTROL, 1 << 48), Err(Refused));
    assert_eq!(without.write(SELECT, CYCLES | 1 << 34), Err(Refused));
    assert_eq!((without.read(0x345), without.read_counter(1 << 29)), (Ok(1 << 13), Err(Refused)));
}

#[test]
fn pebs_is_for_cpus_that_can_give_it_to_a_guest() {
    let (leaf_1_ecx, leaf_1_edx, _, capabilities) = IntelCore::CPUID;
    let all = Enumeration { leaf_1_ecx, leaf_1_edx, capabilities, misc_enable: 0, survives_nested_faults: true };
    let found = |enumeration| {
        pmu::not_yet_wired::pebs::Description::find(&enumeration, CounterSet::first(4, 3), 48, true).is_some()
    };
    assert!(found(all));
    assert!(!found(Enumeration { survives_nested_faults: false, ..all }));
    assert!(!found(Enumeration { misc_enable: 1 << 12, ..all }));
    assert!(!found(Enumeration { capabilities: capabilities & !(1 << 14), ..all }));
    assert!(!found(Enumeration { leaf_1_edx: 0, ..all }) && !found(Enumeration { leaf_1_ecx: 0, ..all }));
    assert!(pmu::not_yet_wired::lbr::Description::from_cpuid(0, 0b1011, 0b011).is_none());
    assert!(pmu::not_yet_wired::lbr::Description::from_cpuid(1 << 19, 0xf0, 0).is_none(), "more entries than are kept");
    assert!(!pmu::not_yet_wired::topdown::is_present(3, 1 << 15) && !pmu::not_yet_wired::topdown::is_present(4, 0));
}

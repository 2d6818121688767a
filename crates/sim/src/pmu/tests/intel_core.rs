// SPDX-License-Identifier: MIT OR Apache-2.0
//! PEBS, last branch records and top-down metrics, as a guest finds them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::vec::Vec;

use pmu::guest::{Config, Filter, Refused, Vendor};
use pmu::intel::Intel;
use pmu::intel_guest::{Capabilities, IntelGuest};
use pmu::pebs::{Enumeration, Group, ds, record_bytes};
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
        panic!("the processor reads {address:#x} of the host's memory")
    }

    fn write(&mut self, address: u64, _value: u64) -> Option<()> {
        panic!("the processor writes {address:#x} of the host's memory")
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
        pebs: pmu::pebs::Description::find(&enumeration, CounterSet::first(4, 3), 48, true),
        lbr: pmu::lbr::Description::from_cpuid(leaf_7_edx, eax, ebx),
        topdown: pmu::topdown::is_present(leaf_a_edx, capabilities),
    }
}

fn description() -> pmu::intel::Description {
    let (eax, ebx, edx, capabilities) = IntelPmu::CPUID;
    pmu::intel::Description::from_cpuid(eax, ebx, edx, capabilities).expect("version 2")
}

fn driver(core: &Shared<IntelCore>, has: &Capabilities) -> IntelGuest<Shared<IntelCore>> {
    let config = Config { vendor: Vendor::Intel, policy: Policy::Direct, filter: Filter::ALL };
    IntelGuest::new(&config, core.clone(), description(), has)
}

impl Guest {
    /// With a buffer of so many bytes, that interrupts from `threshold` on.
    pub fn new(core: &Shared<IntelCore>, buffer_bytes: u64, threshold: u64) -> Self {
        let mut memory = Memory((0..0x100).step_by(8).map(|offset| (AREA + offset, 0)).collect());
        memory.0.extend((0..buffer_bytes).step_by(8).map(|offset| (BUFFER + offset, 0)));
        let fields = [(ds::BASE, 0), (ds::INDEX, 0), (ds::MAXIMUM, buffer_bytes), (ds::THRESHOLD, threshold)];
        fields.into_iter().for_each(|(field, offset)| _ = memory.0.insert(AREA + field, BUFFER + offset));
        Self { driver: driver(core, &capabilities()), core: core.clone(), memory, interrupts: 0 }
    }

    /// Its first counter counts cycles, with a record each `period` of them.
    fn sampling(core: &Shared<IntelCore>, buffer_bytes: u64, threshold: u64, period: u64) -> Self {
        Self::sampling_on(CounterSet(!0), core, (buffer_bytes, threshold, period))
    }

    /// The same with these counters.
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

    /// The addresses in its records, which are all basic ones of its first counter.
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

#[test]
fn an_overflow_writes_a_record_and_interrupts_when_the_buffer_is_nearly_full() {
    let core = core();
    let mut guest = Guest::sampling(&core, 1024, 96, 100);
    guest.cycles(250, 0x11);
    assert_eq!((guest.records(), guest.interrupts), (vec![0x11, 0x11], 0));
    assert_eq!(guest.driver.read(COUNTER), Ok(MASK + 1 - 50), "it has begun again where its memory says");
    assert_eq!(guest.driver.read(STATUS), Ok(0), "an overflow that writes a record is no more than that");
    guest.cycles(50, 0x22);
    assert_eq!((guest.records(), guest.interrupts), (vec![0x11, 0x11, 0x22], 1));
    assert_eq!(guest.driver.read(STATUS), Ok(1 << 62));
    guest.writes(&[(CLEAR, 1 << 62)]);
    assert_eq!(guest.driver.read(STATUS), Ok(0));
}

#[test]
fn adaptive_records_have_what_was_asked_for() {
    let core = core();
    let mut guest = Guest::sampling(&core, 4096, 4096, 100);
    let groups = Group::REGISTERS | Group::BRANCHES | 1 << 24;
    guest.writes(&[(DATA_CONFIG, groups), (SELECT, CYCLES | 1 << 34), (LBR_CONTROL, 0x7f_0007)]);
    assert_eq!(guest.driver.read(SELECT), Ok(CYCLES | 1 << 34));
    let run = Run { cycles: 100, ..Run::default() };
    guest.run(&Activity { run, address: 0x33, branches: &branches(3, 0x500), ..Activity::default() });
    assert_eq!((guest.index(), record_bytes(groups)), (224, 224));
    assert_eq!(guest.memory.0[&BUFFER], groups | 224 << 48);
    assert_eq!([176, 184, 200].map(|at| guest.memory.0[&(BUFFER + at)]), [0x502, 0x1502, 0x501], "the youngest first");
    guest.writes(&[(SELECT, CYCLES)]);
    guest.cycles(100, 0x44);
    assert_eq!(guest.index(), 224 + 32, "without the bit it is the shortest");
}

#[test]
fn a_full_buffer_takes_no_more_and_nothing_goes_beyond_it() {
    let core = core();
    let mut guest = Guest::sampling(&core, 80, 1 << 20, 10);
    guest.cycles(1000, 0x11);
    assert_eq!((guest.records().len(), guest.memory.0[&(BUFFER + 64)], guest.interrupts), (2, 0, 0));
}

#[test]
fn a_hostile_area_harms_nobody_else() {
    let far = u64::MAX - 7;
    let areas: [(u64, &[(u64, u64)]); 6] = [
        (0xffff_ffff_ffff_fff8, &[]),
        (0xdead_0000, &[]),
        (AREA, &[(ds::INDEX, far), (ds::MAXIMUM, u64::MAX)]),
        (AREA, &[(ds::INDEX, 0x9999_0000), (ds::MAXIMUM, u64::MAX), (ds::THRESHOLD, 0)]),
        (AREA, &[(ds::INDEX, AREA), (ds::MAXIMUM, u64::MAX), (ds::THRESHOLD, far)]),
        (AREA, &[(ds::INDEX, BUFFER), (ds::MAXIMUM, BUFFER + 64), (ds::THRESHOLD, u64::MAX)]),
    ];
    for (area, fields) in areas {
        let core = core();
        let mut hostile = Guest::sampling(&core, 256, 256, 10);
        hostile.writes(&[(DS_AREA, area)]);
        fields.iter().for_each(|&(field, value)| _ = hostile.memory.0.insert(AREA + field, value));
        hostile.cycles(100, 0x66);
        core.0.borrow_mut().run(&host_work(), &mut Forbidden);
        hostile.driver.switch_out();
        let mut other = Guest::sampling(&core, 256, 256, 10);
        other.cycles(20, 0x77);
        assert_eq!(other.records(), [0x77, 0x77], "area {area:#x}, {fields:x?}");
        other.driver.switch_out();
        assert!(core.0.borrow().is_clear());
    }
}

fn host_work() -> Activity<'static> {
    let run =
        Run { cycles: 1 << 20, instructions: 1 << 20, reference_cycles: 1 << 20, is_kernel: true, ..Run::default() };
    let branches = &[Branch { from: 0xbad, to: 0xbad, kind: Kind::Other, cycles: 0 }];
    Activity { run, branches, address: 0xbad, stamp: 0xbad, slots: [1000; 8] }
}

#[test]
fn records_are_never_of_another_users_counter() {
    let core = core();
    let hosts = CounterSet::only(Counter::general(0));
    let mut host = Bank::new(Intel::new(core.clone(), description()), Policy::Direct);
    host.switch_in(hosts);
    host.write(0, MASK - 9);
    host.count(0, Some(&Event::of(What::Cycles)));
    let mut guest = Guest::sampling_on(CounterSet::first(4, 3).without(hosts), &core, (1024, 1024, 10));
    guest.cycles(500, 0x11);
    assert_eq!(guest.index(), 0, "its counter of this number is not to be had");
    assert_eq!((host.take_overflows(), host.read(0)), (1, 490));
}

#[test]
fn an_event_moves_to_its_own_counter_when_it_is_to_write_records() {
    let mut guest = Guest::new(&core(), 1024, 1024);
    guest.driver.switch_in(CounterSet(!0));
    guest.memory.0.insert(AREA + ds::GENERAL_RESET + 8, MASK - 9);
    guest.writes(&[(DS_AREA, AREA), (COUNTER + 1, MASK - 19), (SELECT + 1, CYCLES)]);
    guest.cycles(10, 0x11);
    assert_eq!((guest.index(), guest.driver.read(COUNTER + 1)), (0, Ok(MASK - 9)), "on whichever counter was free");
    guest.writes(&[(PEBS_ENABLE, 2)]);
    guest.cycles(10, 0x22);
    assert_eq!((guest.index(), guest.memory.0[&(BUFFER + 16)]), (32, 2));
}

#[test]
fn the_last_branches_are_the_guests_own_and_the_youngest_comes_first() {
    let core = core();
    let mut guest = Guest::new(&core, 0, 0);
    guest.driver.switch_in(CounterSet(!0));
    guest.writes(&[(LBR_DEPTH, 8), (LBR_CONTROL, 0x7f_0007)]);
    guest.run(&Activity { branches: &branches(10, 0x100), ..Activity::default() });
    core.0.borrow_mut().run(&host_work(), &mut Forbidden);
    let from = |guest: &mut Guest| [0, 1, 7, 8].map(|at| guest.driver.read(LBR_FROM + at));
    assert_eq!(from(&mut guest), [0x109, 0x108, 0x102, 0].map(Ok));
    guest.driver.switch_out();
    assert!(core.0.borrow().is_clear());
    assert_eq!(from(&mut guest), [0x109, 0x108, 0x102, 0].map(Ok), "they can be read while they are away");
    guest.driver.switch_in(CounterSet(!0));
    guest.run(&Activity { branches: &branches(1, 0x200), ..Activity::default() });
    assert_eq!(from(&mut guest), [0x200, 0x109, 0x103, 0].map(Ok));
    guest.writes(&[(LBR_DEPTH, 8)]);
    assert_eq!(from(&mut guest), [0; 4].map(Ok), "a write of the depth empties them");
}

#[test]
fn only_branches_of_the_kinds_and_modes_asked_for_are_recorded() {
    let core = core();
    let mut guest = Guest::new(&core, 0, 0);
    guest.driver.switch_in(CounterSet(!0));
    guest.writes(&[(LBR_CONTROL, 0x20_0005)]);
    let kernel = Run { is_kernel: true, ..Run::default() };
    guest.run(&Activity { run: kernel, branches: &branches(1, 0x100), ..Activity::default() });
    let call = Branch { kind: Kind::RelativeCall, ..branches(1, 0x200)[0] };
    guest.run(&Activity { branches: &[call], ..Activity::default() });
    assert_eq!(guest.driver.read(LBR_FROM), Ok(0));
    guest.run(&Activity { branches: &branches(1, 0x300), ..Activity::default() });
    assert_eq!(guest.driver.read(LBR_FROM), Ok(0x300));
}

/// Ten thousand slots by one share, then a thousand turns of ten slots each by another: each of them too short to move a share of
/// all by its last bit.
#[test]
fn shares_survive_turns_that_are_too_short_to_move_them() {
    let core = core();
    let mut guest = Guest::new(&core, 0, 0);
    guest.driver.switch_in(CounterSet(!0));
    guest.writes(&[(FIXED_CONTROL, 0x3000), (SLOTS, 0), (METRICS, 0), (CONTROL, 1 << 35 | 1 << 48)]);
    guest.run(&Activity { slots: [10_000, 0, 0, 0, 0, 0, 0, 0], ..Activity::default() });
    for _ in 0..1000 {
        guest.driver.switch_out();
        core.0.borrow_mut().run(&host_work(), &mut Forbidden);
        guest.driver.switch_in(CounterSet(!0));
        guest.run(&Activity { slots: [0, 0, 10, 0, 0, 0, 0, 0], ..Activity::default() });
    }
    assert_eq!(guest.driver.read_counter(1 << 30 | 3), Ok(20_000));
    assert_eq!(guest.driver.read_counter(1 << 29), Ok(0x80_0080), "half and half");
}

#[test]
fn shares_that_a_guest_puts_back_go_on_from_there() {
    let mut guest = Guest::new(&core(), 0, 0);
    guest.driver.switch_in(CounterSet(!0));
    guest.writes(&[(FIXED_CONTROL, 0x3000), (CONTROL, 1 << 35 | 1 << 48), (SLOTS, 300), (METRICS, 0xaa00_0055)]);
    assert_eq!((guest.driver.read(SLOTS), guest.driver.read(METRICS)), (Ok(300), Ok(0xaa00_0055)));
    guest.run(&Activity { slots: [100, 0, 0, 0, 0, 0, 0, 0], ..Activity::default() });
    assert_eq!((guest.driver.read(SLOTS), guest.driver.read(METRICS)), (Ok(400), Ok(0x8000_0080)), "a half each");
}

#[test]
fn slots_that_overflow_are_told() {
    let mut guest = Guest::new(&core(), 0, 0);
    guest.driver.switch_in(CounterSet(!0));
    guest.writes(&[(FIXED_CONTROL, 0xb000), (SLOTS, MASK - 9), (METRICS, 0), (CONTROL, 1 << 35 | 1 << 48)]);
    guest.run(&Activity { slots: [5; 8], ..Activity::default() });
    assert_eq!((guest.driver.read(STATUS), guest.interrupts), (Ok(1 << 35 | 1 << 48), 1));
    assert_eq!(guest.driver.read(SLOTS), Ok(30));
    guest.writes(&[(CLEAR, 1 << 35 | 1 << 48)]);
    assert_eq!(guest.driver.read(STATUS), Ok(0));
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
    let mut without = driver(&core, &Capabilities::default());
    without.switch_in(CounterSet(!0));
    for number in [PEBS_ENABLE, DATA_CONFIG, DS_AREA, LBR_CONTROL, LBR_DEPTH, LBR_FROM, SLOTS, METRICS] {
        assert_eq!((without.read(number), without.write(number, 0)), (Err(Refused), Err(Refused)), "{number:#x}");
    }
    assert_eq!(without.write(CONTROL, 1 << 48), Err(Refused));
    assert_eq!(without.write(SELECT, CYCLES | 1 << 34), Err(Refused));
    assert_eq!((without.read(0x345), without.read_counter(1 << 29)), (Ok(1 << 13), Err(Refused)));
}

#[test]
fn pebs_is_for_processors_that_can_give_it_to_a_guest() {
    let (leaf_1_ecx, leaf_1_edx, _, capabilities) = IntelCore::CPUID;
    let all = Enumeration { leaf_1_ecx, leaf_1_edx, capabilities, misc_enable: 0, survives_nested_faults: true };
    let found = |enumeration| pmu::pebs::Description::find(&enumeration, CounterSet::first(4, 3), 48, true).is_some();
    assert!(found(all));
    assert!(!found(Enumeration { survives_nested_faults: false, ..all }));
    assert!(!found(Enumeration { misc_enable: 1 << 12, ..all }));
    assert!(!found(Enumeration { capabilities: capabilities & !(1 << 14), ..all }));
    assert!(!found(Enumeration { leaf_1_edx: 0, ..all }) && !found(Enumeration { leaf_1_ecx: 0, ..all }));
    assert!(pmu::lbr::Description::from_cpuid(0, 0b1011, 0b011).is_none());
    assert!(pmu::lbr::Description::from_cpuid(1 << 19, 0xf0, 0).is_none(), "more entries than are kept");
    assert!(!pmu::topdown::is_present(3, 1 << 15) && !pmu::topdown::is_present(4, 0));
}

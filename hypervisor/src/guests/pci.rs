// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's PCI functions: found out by the policy that the operator wants (`pci=`), before the guests run or once
//! they do.
//!
//! There is one walk. `all` and `allow` take it whole at boot, while the other CPUs wake. With `lazy` any
//! CPU that has nothing else to do takes a step of it, one function, and searches for work again.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use boot::options::SelfTest;
use firmware::Tables;
use pci::bar::Space as RangeSpace;
use pci::{Cost, EcamRange, Filter, Function, Kind, Scan, Step};
use spin::Mutex;
use wire::{PciCost, PciFunction, PciPolicy, PciRange, PciSurvey, ReplyBody, page};

use crate::arch::pci::Space;
use crate::arch::{apic, cpu, timer};
use crate::guests::guest::{GUESTS, Guests};
use crate::kernel::platform::{BOOT, FIRMWARE};
use crate::kernel::timeline::{self, Name};

/// Functions that are kept; more are only counted.
const MOST_FUNCTIONS: usize = 1024;
/// The most functions collected for one page; a frame holds fewer.
const PAGE_FUNCTIONS: usize = 64;
/// The time after which an idle CPU checks again whether it may take a step.
const LOOK_AGAIN_US: u64 = 10_000;

static SURVEY: Mutex<Survey> = Mutex::new(Survey::new());
/// Idle CPUs are to take steps.
static IS_FOR_IDLE: AtomicBool = AtomicBool::new(false);
/// A guest is about to execute its first instruction, or has.
static HAS_GUEST: AtomicBool = AtomicBool::new(false);

struct Survey {
    space: Space,
    is_begun: bool,
    /// One for each segment that is not done; the last one goes on.
    scans: Vec<Scan>,
    found: Vec<Function>,
    count: u32,
    /// The cost of the scans that are done.
    done: Cost,
    before_guests: Option<Cost>,
}

/// With `pci=all` and `pci=allow` everything that is wanted is probed now; `between` is called after each function.
pub fn probe_before_guests(mut between: impl FnMut()) {
    let mut survey = SURVEY.lock();
    let Some((_, options)) = BOOT.get().filter(|(_, options)| options.pci != Filter::Lazy) else { return };
    let _span = timeline::span(Name::PciProbe, 0);
    while survey.step(&options.pci) == Step::More {
        between();
    }
}

/// The guests that start with the host are ordered to: an idle CPU once they run may probe.
pub fn let_the_idle_probe() {
    let is_lazy = BOOT.get().is_some_and(|(_, options)| options.pci == Filter::Lazy);
    IS_FOR_IDLE.store(is_lazy, Ordering::Release);
}

/// For a CPU that has nothing else to do: takes a step, if there is one to take and nobody else is taking it;
/// states whether.
pub fn step_while_idle() -> bool {
    if !IS_FOR_IDLE.load(Ordering::Relaxed) || !GUESTS.get().is_none_or(is_nobody_waiting) {
        return false;
    }
    let (Some(mut survey), Some((_, options))) = (SURVEY.try_lock(), BOOT.get()) else { return false };
    if survey.step(&options.pci) == Step::Done {
        IS_FOR_IDLE.store(false, Ordering::Relaxed);
    }
    true
}

/// Returns whether no guest is on its way to its first instruction.
fn is_nobody_waiting(guests: &Guests) -> bool {
    guests.is_none_starting() && (HAS_GUEST.load(Ordering::Acquire) || guests.are_done())
}

/// Returns when a CPU that goes to sleep wants to check again, if there are steps to take.
pub fn next_poll() -> Option<u64> {
    IS_FOR_IDLE.load(Ordering::Relaxed).then(|| cpu::tsc() + timer::us_to_ticks(LOOK_AGAIN_US))
}

/// The next instruction is a guest's: what has been spent until the first one's is remembered.
pub fn note_guest_runs() {
    if !HAS_GUEST.load(Ordering::Relaxed) {
        let mut survey = SURVEY.lock();
        let total = survey.total();
        survey.before_guests.get_or_insert(total);
        HAS_GUEST.store(true, Ordering::Release);
    }
}

impl Survey {
    const fn new() -> Self {
        Self {
            space: Space::by_ports(),
            is_begun: false,
            scans: Vec::new(),
            found: Vec::new(),
            count: 0,
            done: Cost { accesses: 0, ticks: 0 },
            before_guests: None,
        }
    }

    fn total(&self) -> Cost {
        self.scans.iter().fold(self.done, |sum, scan| sum + scan.cost())
    }

    fn step(&mut self, filter: &Filter) -> Step {
        if !self.is_begun {
            self.begin(filter);
        }
        let Some(scan) = self.scans.last_mut() else { return Step::Done };
        let (found, count) = (&mut self.found, &mut self.count);
        if scan.step(&mut self.space, &mut |function| keep(function, found, count)) == Step::Done {
            self.done += scan.cost();
            self.scans.pop();
            self.restart_if_tested(filter);
            if self.scans.is_empty() {
                let Cost { accesses, ticks } = self.done;
                timeline::instant(Name::PciKnown, self.count);
                log::info!("PCI: {} functions probed with {accesses} accesses in {ticks} cycles", self.count);
                return Step::Done;
            }
        }
        Step::More
    }

    /// For a self-test: the first bus again, by ports, when all is done.
    fn restart_if_tested(&mut self, filter: &Filter) {
        let is_tested = BOOT.get().is_some_and(|(_, options)| options.self_tests.contains(&SelfTest::PciStorm));
        if is_tested && self.scans.is_empty() {
            self.found.clear();
            self.count = 0;
            self.scans.push(Scan::new(filter, 0, [0]));
        }
    }

    /// Opens the way to the registers and plans a walk for each segment. Their roots are bus 0 and where the firmware's
    /// ranges begin.
    fn begin(&mut self, filter: &Filter) {
        self.is_begun = true;
        let tables = FIRMWARE.lock();
        let mut roots: Vec<(u16, u8)> = [(0, 0)].into();
        for ecam in &tables.mcfg {
            let range =
                EcamRange { base: ecam.base, segment: ecam.segment, first_bus: ecam.bus_start, last_bus: ecam.bus_end };
            if is_clear(range, &tables) && self.space.add(range) {
                roots.push((range.segment, range.first_bus));
            } else {
                log::warn!("PCI: configuration space at {:#x}, by firmware, is not used; ports are", range.base);
            }
        }
        let mut segments: Vec<u16> = roots.iter().map(|(segment, _)| *segment).collect();
        segments.sort_unstable_by(|a, b| b.cmp(a));
        segments.dedup();
        let of = |wanted| roots.iter().filter(move |(segment, _)| *segment == wanted).map(|(_, bus)| *bus);
        self.scans = segments.iter().map(|&segment| Scan::new(filter, segment, of(segment))).collect();
    }
}

/// Returns whether configuration space can be where firmware states: neither memory nor another device of the host's is
/// there.
fn is_clear(range: EcamRange, tables: &Tables) -> bool {
    let Some((boot, _)) = BOOT.get() else { return false };
    let end_of_memory = 1 << (cpu::cpuid(0x8000_0008, 0).eax & 0x3f);
    let memory = boot.memory_map.usable().map(|memory| (memory.start().0, memory.end().0));
    let io_apics = tables.io_apics.iter().map(|io_apic| io_apic.address);
    let devices = io_apics.chain(tables.hpet_address).chain([apic::physical()]);
    let taken = memory.chain(devices.map(|address| (address, address + 1))).chain([(end_of_memory, u64::MAX)]);
    taken.into_iter().all(|(start, end)| !range.overlaps(start, end))
}

fn keep(function: Function, found: &mut Vec<Function>, count: &mut u32) {
    *count += 1;
    if found.len() < MOST_FUNCTIONS {
        function.problems.iter().for_each(|problem| log::warn!("PCI {}: {problem}", function.place));
        found.push(function);
    }
}

/// A page of the functions found so far.
pub fn list(from_index: u32) -> ReplyBody {
    let survey = SURVEY.lock();
    let rest = survey.found.iter().skip(from_index as usize);
    let functions = page::fill(rest.map(describe), PAGE_FUNCTIONS);
    let next = from_index as usize + functions.len();
    let next_index = (next < survey.found.len()).then_some(next as u32);
    let policy = match BOOT.get().map(|(_, options)| &options.pci) {
        Some(Filter::All) => PciPolicy::All,
        Some(Filter::Allow(_)) => PciPolicy::Allow,
        Some(Filter::Lazy) | None => PciPolicy::Lazy,
    };
    let survey = PciSurvey {
        policy,
        is_complete: survey.is_begun && survey.scans.is_empty(),
        functions: survey.count,
        before_guests: survey.before_guests.map(cost),
        total: cost(survey.total()),
    };
    ReplyBody::PciFunctions { survey, functions, next_index }
}

fn cost(Cost { accesses, ticks }: Cost) -> PciCost {
    PciCost { accesses, ticks }
}

fn describe(function: &Function) -> PciFunction {
    let (place, identity) = (function.place, function.identity);
    let (bars, bus_behind) = match &function.kind {
        Kind::Endpoint { bars } => (bars.as_slice(), None),
        Kind::Bridge { secondary, .. } => (&[][..], Some(*secondary)),
        Kind::Other(_) => (&[][..], None),
    };
    let ranges = bars.iter();
    let ranges = ranges.map(|bar| PciRange { is_ports: bar.space == RangeSpace::Ports, address: bar.address });
    PciFunction {
        place: (place.segment, place.bus, place.device(), place.function()),
        vendor: identity.vendor,
        device: identity.device,
        class: (identity.class, identity.subclass, identity.interface),
        revision: identity.revision,
        bus_behind,
        ranges: ranges.collect(),
        capabilities: function.capabilities.iter().map(|capability| capability.id).collect(),
        problems: function.problems.iter().map(|problem| problem.to_string()).collect(),
        cost: cost(function.cost),
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's PCI functions: found out by the policy that the operator wants (`pci=`), before the guests run or once
//! they do.
//!
//! There is one walk. `all` and `allow` take it whole at boot, while the other CPUs wake. With `lazy` any
//! CPU that has nothing else to do takes a step of it, one function, and searches for work again.

pub mod assigning;
pub mod listing;

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use firmware::Tables;
use pci::{Cost, EcamRange, Filter, Function, Groups, Scan, Step};
use spin::Mutex;

use crate::arch::pci::Space;
use crate::arch::{apic, cpu, fault, timer};
use crate::guests::guest::{GUESTS, Guests};
use crate::kernel::iommu;
use crate::kernel::platform::{BOOT, FIRMWARE};
use crate::kernel::timeline::{self, Name};

/// Functions that are kept; more are only counted.
const MOST_FUNCTIONS: usize = 1024;
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
    /// The buses (segment and number) at which the walks begin.
    roots: Vec<(u16, u8)>,
    /// One for each segment that is not done; the last one goes on.
    scans: Vec<Scan>,
    found: Vec<Function>,
    count: u32,
    /// The isolation groups of those that are kept, once they are known.
    groups: Option<Groups>,
    /// The cost of the scans that are done.
    done: Cost,
    before_guests: Option<Cost>,
}

/// Functions reach no memory from here on but what firmware reserves for them, where the machine has IOMMUs.
pub fn take_iommus_over() {
    iommu::begin(&mut SURVEY.lock().space);
    fault::point!(crate::guests::faults::let_a_device_write());
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
/// says whether.
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
            roots: Vec::new(),
            scans: Vec::new(),
            found: Vec::new(),
            count: 0,
            groups: None,
            done: Cost { accesses: 0, ticks: 0 },
            before_guests: None,
        }
    }

    fn is_complete(&self) -> bool {
        self.is_begun && self.scans.is_empty()
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
            fault::point!(self.start_again_if_asked(filter));
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
    #[cfg(feature = "faults")]
    fn start_again_if_asked(&mut self, filter: &Filter) {
        let is_asked_for = crate::kernel::faults::is_asked_for(boot::self_tests::SelfTest::PciStorm);
        if is_asked_for && self.scans.is_empty() {
            self.found.clear();
            (self.count, self.groups) = (0, None);
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
        self.roots = roots;
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's PCI functions: found out by the policy that the operator wants (`pci=`), before the guests run or once
//! they do.
//!
//! There is one walk. `all` and `allow` take it whole at boot, while the other CPUs wake. With `lazy` any
//! CPU that has nothing else to do takes a step of it, one function, and searches for work again.

pub mod assignments;
pub mod groups;
pub mod listing;
pub mod sriov;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::sync::atomic::{AtomicBool, Ordering};

use firmware::Tables;
use nvme::Serial;
use pci::bar::{Bar, Space as RangeSpace};
use pci::sriov::overlay::WithVirtual;
use pci::{Bdf, Cost, EcamRange, Filter, Function, Groups, Kind, Scan, Step};
use spin::Mutex;
use units::{PAGE_BYTES, PhysAddr, PhysRange};
use wire::PciVirtualFunctions;

use crate::arch::pci::Space as Registers;
use crate::arch::{apic, cpu, fault, timer};
use crate::guests::slots::GUESTS;
use crate::kernel::iommu;
use crate::kernel::platform::{boot_info, firmware, options};
use crate::kernel::timeline::{self, Name};

/// Functions that are kept; more are only counted.
const MOST_FUNCTIONS: usize = 1024;
/// The time after which an idle CPU checks again whether it may take a step.
const RECHECK_US: u64 = 10_000;

/// Configuration space with the virtual functions that are enabled.
pub type Space = WithVirtual<Registers>;

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
    /// The virtual functions that those can have, once they are known.
    virtual_functions: Option<Vec<(Bdf, PciVirtualFunctions)>>,
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
    let Some(options) = options().filter(|options| options.pci != Filter::Lazy) else { return };
    let _span = timeline::span(Name::PciProbe, 0);
    while survey.step(&options.pci) == Step::More {
        between();
    }
}

/// The guests that start with the host are ordered to: an idle CPU once they run may probe.
pub fn let_the_idle_probe() {
    let is_lazy = options().is_some_and(|options| options.pci == Filter::Lazy);
    IS_FOR_IDLE.store(is_lazy, Ordering::Release);
}

/// For a CPU that has nothing else to do: takes a step, if there is one to take and no other CPU is taking it; returns
/// whether it has.
pub fn step_while_idle() -> bool {
    if !IS_FOR_IDLE.load(Ordering::Relaxed) || !is_no_guest_starting() {
        return false;
    }
    let (Some(mut survey), Some(options)) = (SURVEY.try_lock(), options()) else { return false };
    if survey.step(&options.pci) == Step::Done {
        IS_FOR_IDLE.store(false, Ordering::Relaxed);
    }
    true
}

/// Returns whether no guest is on its way to its first instruction.
fn is_no_guest_starting() -> bool {
    GUESTS.is_none_starting() && (HAS_GUEST.load(Ordering::Acquire) || GUESTS.are_done())
}

/// Probes what is left to probe by the operator's policy, now.
pub fn probe_everything() {
    let Some(options) = options() else { return };
    let mut survey = SURVEY.lock();
    while survey.step(&options.pci) == Step::More {}
}

/// Reaches configuration space: for functions that are a guest's or about to be.
pub fn with_config<T>(act: impl FnOnce(&mut Space) -> T) -> T {
    act(&mut SURVEY.lock().space)
}

/// The functions found so far.
pub fn with_functions<T>(act: impl FnOnce(&[Function]) -> T) -> T {
    act(&SURVEY.lock().found)
}

/// Notes the serial number of an NVMe controller.
pub fn note_serial(place: Bdf, serial: Serial) {
    let mut survey = SURVEY.lock();
    let asked = survey.found.iter_mut().find(|function| function.place == place);
    asked.into_iter().for_each(|function| function.serial = Some(serial));
}

/// Returns what else has some of this memory, which a function claims for itself.
pub fn taken_by(function: Bdf, memory: PhysRange) -> Option<String> {
    let overlaps = |start: u64, end: u64| memory.start().0 < end && start < memory.end().0;
    // Neither lock is held when the survey's is taken.
    let iommus = iommu::register_ranges();
    let known = taken(firmware(), &iommus);
    if let Some((start, _, owner)) = known.into_iter().find(|(start, end, _)| overlaps(*start, *end)) {
        return Some(format!("{owner} ({start:#x})"));
    }
    let survey = SURVEY.lock();
    let others = survey.found.iter().filter(|other| other.place != function);
    let other = others.filter_map(|other| {
        let Kind::Endpoint { bars } = &other.kind else { return None };
        let is_inside = |bar: &Bar| bar.space != RangeSpace::Ports && memory.contains(PhysAddr(bar.address));
        bars.iter().any(is_inside).then_some(other.place)
    });
    other.map(|place| format!("PCI function {place}")).next()
}

/// Returns when a CPU that goes to sleep wants to check again, if there are steps to take.
pub fn next_poll() -> Option<u64> {
    IS_FOR_IDLE.load(Ordering::Relaxed).then(|| cpu::tsc() + timer::us_to_ticks(RECHECK_US))
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
            space: WithVirtual::new(Registers::by_ports()),
            is_begun: false,
            roots: Vec::new(),
            scans: Vec::new(),
            found: Vec::new(),
            count: 0,
            groups: None,
            virtual_functions: None,
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
            (self.count, self.groups, self.virtual_functions) = (0, None, None);
            self.scans.push(Scan::new(filter, 0, [0]));
        }
    }

    /// Opens the way to the registers and plans a walk for each segment. Their roots are bus 0 and where the firmware's
    /// ranges begin.
    fn begin(&mut self, filter: &Filter) {
        self.is_begun = true;
        let iommus = iommu::register_ranges();
        let tables = firmware();
        let mut roots: Vec<(u16, u8)> = [(0, 0)].into();
        for ecam in &tables.mcfg {
            let range =
                EcamRange { base: ecam.base, segment: ecam.segment, first_bus: ecam.bus_start, last_bus: ecam.bus_end };
            if is_clear(range, tables, &iommus) && self.space.config.add(range) {
                roots.push((range.segment, range.first_bus));
            } else {
                log::warn!("PCI: configuration space at {:#x}, by firmware, is not used; ports are", range.base);
            }
        }
        let mut segments: Vec<u16> = roots.iter().map(|(segment, _)| *segment).collect();
        sort::by_key(&mut segments, |segment| Reverse(*segment));
        segments.dedup();
        let of = |wanted| roots.iter().filter(move |(segment, _)| *segment == wanted).map(|(_, bus)| *bus);
        self.scans = segments.iter().map(|&segment| Scan::new(filter, segment, of(segment))).collect();
        self.roots = roots;
    }
}

/// Returns whether configuration space can be where firmware states: neither memory nor another device of the host's is
/// there.
fn is_clear(range: EcamRange, tables: &Tables, iommus: &[PhysRange]) -> bool {
    let others = taken(tables, iommus).into_iter().filter(|(start, ..)| *start != range.base);
    boot_info().is_some() && others.into_iter().all(|(start, end, _)| !range.overlaps(start, end))
}

/// Addresses that are memory or the host's devices, by firmware: from, to, what.
fn taken(tables: &Tables, iommus: &[PhysRange]) -> Vec<(u64, u64, &'static str)> {
    let end_of_memory = 1 << (cpu::cpuid(0x8000_0008, 0).eax & 0x3f);
    let map = boot_info().map(|boot| &boot.memory_map);
    let memory =
        map.into_iter().flat_map(|map| map.usable()).map(|memory| (memory.start().0, memory.end().0, "memory"));
    let io_apics = tables.io_apics.iter().map(|io_apic| (io_apic.address, "an I/O APIC"));
    let hpet = tables.hpet_address.map(|address| (address, "the HPET"));
    let devices = io_apics.chain(hpet).chain([(apic::physical(), "the local APICs")]);
    let devices = devices.map(|(address, what)| (address, address + PAGE_BYTES, what));
    let config = tables.mcfg.iter().map(|ecam| {
        let bytes = (u64::from(ecam.bus_end.saturating_sub(ecam.bus_start)) + 1) << 20;
        (ecam.base, ecam.base.saturating_add(bytes), "configuration space")
    });
    let iommus = iommus.iter().map(|range| (range.start().0, range.end().0, "an IOMMU"));
    memory.chain(devices).chain(config).chain(iommus).chain([(end_of_memory, u64::MAX, "no CPU")]).collect()
}

fn keep(function: Function, found: &mut Vec<Function>, count: &mut u32) {
    *count += 1;
    if found.len() < MOST_FUNCTIONS {
        function.problems.iter().for_each(|problem| log::warn!("PCI {}: {problem}", function.place));
        found.push(function);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine's IOMMUs: taken over at boot, so that no function reaches memory unasked, or gone on with as the image
//! before has left them. Neither registers nor tables are written in an update's blackout.

mod chips;
mod given;
pub mod guests;
pub mod inputs;
pub mod polling;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use arrayvec::ArrayVec;
use boot::BootInfo;
use firmware::{PhysicalMemory, Tables, Unreadable};
use handover::layout::Purpose;
use iommu::description::{self, Description, Kind, UnitDescription};
use iommu::{MAX_PIECES, Place, Problem, Reports, Store, Storms, Unit};
use pci::{Bdf, ConfigSpace};
use spin::{Mutex, Once};
use units::{MIB, PageSize, PhysRange};
use wire::{IommuKind, IommuUnit};

use self::given::Given;

use super::inherited;
use super::platform::{boot_info, firmware};
use crate::arch::iommu::{TableWords, UnitRegisters, has_pairs};
use crate::arch::memory::FRAMES;
use crate::arch::{apic, timer};

/// Memory for the tables of units, a piece at a time: a device table takes 2 MiB, aligned.
const PIECE_BYTES: u64 = 4 * MIB;
/// A table of firmware's that is longer is not read: those of servers have some thousand bytes.
const MAX_TABLE_BYTES: usize = 8 << 10;
/// From one event of a function to the next, and from one line about a unit's own trouble to the next.
const REPORT_INTERVAL_US: u64 = 10_000_000;

/// Firmware's table.
static TABLE: Once<Kept> = Once::new();
/// The units, once they are taken over.
static IOMMUS: Mutex<Option<Box<Iommus>>> = Mutex::new(None);

/// Firmware's table, copied while the boot page tables show it.
pub struct Table {
    /// Where it was.
    address: u64,
    bytes: ArrayVec<u8, MAX_TABLE_BYTES>,
}

/// The same on the heap.
struct Kept {
    address: u64,
    bytes: Vec<u8>,
}

/// All units and their tables.
struct Iommus {
    description: Description,
    store: Store<TableWords>,
    units: Vec<Driven>,
    /// Memory that guests' functions reach.
    given: Vec<Given>,
    /// The unit that the interrupts of each I/O APIC pass, with their requester; `None` where firmware names none.
    chips: Vec<Option<(usize, Bdf)>>,
    /// Units pass interrupts unchecked, for an image that may begin.
    has_passed: bool,
    reports: Reports,
    storms: Storms,
    next_poll: u64,
}

/// One unit, as far as it can be driven.
struct Driven {
    unit: Result<Unit<UnitRegisters>, String>,
    refused: u64,
    /// No trouble of its own is logged until then.
    quiet_until: u64,
}

impl Table {
    /// None.
    pub const fn new() -> Self {
        Self { address: 0, bytes: ArrayVec::new_const() }
    }

    /// Copies the table, which later page tables do not show, if there is one.
    pub fn read(&mut self, memory: &dyn PhysicalMemory, tables: &Tables) {
        let Some(address) = tables.ivrs.or(tables.dmar) else { return };
        self.address = address;
        let mut header = [0; 8];
        if memory.read(address, &mut header).is_err() {
            return;
        }
        let [_, _, _, _, length @ ..] = header;
        let wanted = (u32::from_le_bytes(length) as usize).min(MAX_TABLE_BYTES);
        for offset in 0..wanted as u64 {
            let mut byte = [0];
            if memory.read(address + offset, &mut byte).is_err() {
                return;
            }
            self.bytes.push(byte[0]);
        }
    }

    /// Keeps it on the heap.
    pub fn keep(&self) {
        TABLE.call_once(|| Kept { address: self.address, bytes: self.bytes.to_vec() });
    }
}

impl PhysicalMemory for Kept {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        let offset = usize::try_from(address.wrapping_sub(self.address)).map_err(|_| Unreadable)?;
        let end = offset.checked_add(into.len()).ok_or(Unreadable)?;
        into.copy_from_slice(self.bytes.get(offset..end).ok_or(Unreadable)?);
        Ok(())
    }
}

/// Takes all units over: in an image that replaced another one, as that has left them where it can be. Functions are
/// blocked from here on, but for memory that firmware reserves for them. `config` reads the numbers of buses.
pub fn begin(config: &mut dyn ConfigSpace) {
    let Some(info) = boot_info() else { return };
    let description = describe(info, config);
    if description.units.is_empty() {
        return;
    }
    let interval = timer::us_to_ticks(REPORT_INTERVAL_US);
    let chips = chips::chips(&description);
    let store = Store::new(TableWords::new());
    let mut iommus = Box::new(Iommus {
        description,
        store,
        units: Vec::new(),
        given: Vec::new(),
        chips,
        has_passed: false,
        reports: Reports::new(interval),
        storms: Storms::new(timer::us_to_ticks(1_000_000)),
        next_poll: 0,
    });
    let has_tables = iommus.adopt_tables();
    for number in 0..iommus.description.units.len() {
        let unit = iommus.drive(number, has_tables);
        iommus.units.push(Driven { unit, refused: 0, quiet_until: 0 });
    }
    iommus.remap_interrupts();
    iommus.announce();
    *IOMMUS.lock() = Some(iommus);
}

/// Returns firmware's description; each problem of it is logged.
fn describe(info: &BootInfo, config: &mut dyn ConfigSpace) -> Description {
    let mut description = Description::new();
    if let Some(Err(problem)) = TABLE.get().map(|table| description::read(table, firmware(), config, &mut description))
    {
        log::warn!("firmware tables: {problem}");
    }
    description.check_reserved(|range| is_usable(info, range));
    description.problems.iter().for_each(|problem| log::warn!("firmware tables: {problem}"));
    if description.problems_dropped > 0 {
        log::warn!("firmware tables: {} more problems of IOMMUs", description.problems_dropped);
    }
    description
}

impl Iommus {
    /// Goes on with the memory in which the image before has the tables; returns whether there is any.
    fn adopt_tables(&mut self) -> bool {
        let Some(record) = inherited::record() else { return false };
        for piece in record.kept_for(Purpose::Iommu) {
            if let Err(problem) = self.store.adopt(piece) {
                log::warn!("IOMMU: {problem}");
            }
        }
        !self.store.pieces().is_empty()
    }

    /// Drives one unit: as the image before has left it, else taken over.
    fn drive(&mut self, number: usize, has_tables: bool) -> Result<Unit<UnitRegisters>, String> {
        let registers = self.registers(number)?;
        let is_x2apic = apic::mode() == apic::Mode::X2apic;
        let place = Place { description: &self.description, number, is_x2apic };
        if has_tables {
            match Unit::adopt(registers.clone(), &self.store, place) {
                Ok(unit) => return Ok(unit),
                Err(problem) => log::warn!("IOMMU {number}: {problem}; it is taken over again"),
            }
        }
        chips::mask_all();
        let taken = match Unit::take_over(registers.clone(), &mut self.store, place) {
            // The first unit's tables find no memory, and those of a further one may find too little.
            Err(Problem::OutOfMemory) => {
                self.add_memory()?;
                let place = Place { description: &self.description, number, is_x2apic };
                Unit::take_over(registers, &mut self.store, place)
            }
            taken => taken,
        };
        taken.map_err(|problem| problem.to_string())
    }

    /// A unit's registers, where the unit can be used.
    fn registers(&self, number: usize) -> Result<UnitRegisters, String> {
        let range = self.description.units[number].register_range();
        if boot_info().is_some_and(|info| is_usable(info, range)) {
            return Err("its registers are usable memory by the memory map".to_string());
        }
        if !has_pairs() {
            return Err("the CPUs lack CMPXCHG16B, by which its entries are changed".to_string());
        }
        UnitRegisters::map(number, range).map_err(|error| format!("its registers cannot be mapped: {error:?}"))
    }

    fn add_memory(&mut self) -> Result<(), String> {
        let piece = FRAMES.lock().allocate(PIECE_BYTES, PageSize::Mib2);
        // Not while the ledger is locked: the reason is allocated.
        let piece = piece.map_err(|error| error.to_string())?;
        self.store.add(piece.leak()).map_err(|problem| problem.to_string())
    }

    fn announce(&self) {
        for (described, driven) in self.description.units.iter().zip(&self.units) {
            let (kind, at) = (kind_of(&self.description), described.registers.0);
            match &driven.unit {
                Ok(_) => log::info!("IOMMU: {kind} at {at:#x} isolates the functions behind it"),
                Err(problem) => log::warn!("IOMMU: {kind} at {at:#x} isolates nothing: {problem}"),
            }
        }
        for reserved in self.description.reserved.iter().filter(|reserved| reserved.defect.is_none()) {
            let (first, last) = (reserved.first, reserved.last);
            let (first, last) = (Bdf::of_requester(reserved.segment, first), Bdf::of_requester(reserved.segment, last));
            log::info!("IOMMU: firmware reserves memory {} for PCI functions {first} to {last}", reserved.range);
        }
    }
}

fn is_usable(info: &BootInfo, range: PhysRange) -> bool {
    info.memory_map.usable().any(|usable| usable.intersection(range).is_some())
}

fn kind_of(description: &Description) -> IommuKind {
    match description.kind {
        Some(Kind::Intel) => IommuKind::VtD,
        _ => IommuKind::AmdVi,
    }
}

/// The memory in which the tables are, for the image that follows.
pub fn pieces() -> ArrayVec<PhysRange, MAX_PIECES> {
    let iommus = IOMMUS.lock();
    iommus.iter().flat_map(|iommus| iommus.store.pieces().iter().copied()).collect()
}

/// The registers of all units, by firmware.
pub fn register_ranges() -> Vec<PhysRange> {
    let iommus = IOMMUS.lock();
    iommus.iter().flat_map(|iommus| iommus.description.units.iter().map(UnitDescription::register_range)).collect()
}

/// The units, for the control channel.
pub fn list() -> Vec<IommuUnit> {
    let iommus = IOMMUS.lock();
    let Some(iommus) = iommus.as_ref() else { return Vec::new() };
    let kind = kind_of(&iommus.description);
    let units = iommus.description.units.iter().zip(&iommus.units);
    let unit = |(described, driven): (&UnitDescription, &Driven)| IommuUnit {
        kind,
        segment: described.segment,
        registers: described.registers.0,
        problem: driven.unit.as_ref().err().cloned(),
        refused: driven.refused,
    };
    units.map(unit).collect()
}

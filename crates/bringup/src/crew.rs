// SPDX-License-Identifier: MIT OR Apache-2.0
//! State that all CPUs share during bring-up. Everything in it is either constant or atomic, and starts as zero bytes.

use core::fmt;

use crate::cell::CpuCell;
use crate::hardware::Wake;
use crate::plan::{Plan, Policy};
use crate::state::State;
use crate::sync::{AtomicU32, AtomicU64, Ordering, const_new};
use crate::tree::Tree;

/// Number of CPUs that count their arrivals in one line.
pub const GROUP_CPUS: usize = 64;

/// Words for all.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Shared {
    /// The last step that all may take.
    permitted: AtomicU32,
    /// Time at which all were kicked by one interrupt.
    kicked_at: AtomicU64,
}

/// Reports of [`GROUP_CPUS`] neighbours to the boot CPU.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Group {
    /// Number of CPUs that have arrived.
    online: AtomicU32,
    /// Number of arrivals at which the boot CPU checks.
    expected: AtomicU32,
    /// CPUs that ask it for the time, a bit each.
    asking: AtomicU64,
}

impl Shared {
    const_new! {
        /// No CPU is permitted any step yet.
        {
            Self { permitted: AtomicU32::new(0), kicked_at: AtomicU64::new(0) }
        }
    }
}

impl Group {
    const_new! {
        /// No CPU has arrived yet.
        {
            Self { online: AtomicU32::new(0), expected: AtomicU32::new(0), asking: AtomicU64::new(0) }
        }
    }
}

impl Default for Shared {
    fn default() -> Self {
        Self::new()
    }
}

impl Default for Group {
    fn default() -> Self {
        Self::new()
    }
}

/// Steps that a CPU does only when permitted.
pub(crate) mod permission {
    pub const INITIALISE: u32 = 1;
    pub const SYNCHRONISE: u32 = 2;
    pub const GO_ONLINE: u32 = 3;
}

/// The tables do not fit each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrewError {
    /// There is not even the boot CPU.
    Empty,
    /// More CPUs than cells.
    TooFewCells {
        /// CPUs.
        cpus: usize,
        /// Cells.
        cells: usize,
    },
    /// Not a group for every 64 CPUs.
    TooFewGroups {
        /// CPUs.
        cpus: usize,
        /// Groups.
        groups: usize,
    },
}

impl fmt::Display for CrewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the list of CPUs is empty: it begins with the boot CPU"),
            Self::TooFewCells { cpus, cells } => {
                write!(f, "{cpus} CPUs, but cells for {cells}: use fewer (option cpus=)")
            }
            Self::TooFewGroups { cpus, groups } => {
                write!(f, "{cpus} CPUs need {} groups, not {groups}", cpus.div_ceil(GROUP_CPUS))
            }
        }
    }
}

impl core::error::Error for CrewError {}

/// All CPUs, the boot CPU as number 0.
#[derive(Clone, Copy, Debug)]
pub struct Crew<'a> {
    cells: &'a [CpuCell],
    groups: &'a [Group],
    shared: &'a Shared,
    apic_ids: &'a [u32],
    plan: Plan,
    stays_to_answer: bool,
}

impl<'a> Crew<'a> {
    /// CPU `i` has the identifier `apic_ids[i]`, the boot CPU being the first.
    ///
    /// # Errors
    /// [`CrewError`] where a table is too small.
    pub fn new(
        apic_ids: &'a [u32],
        cells: &'a [CpuCell],
        groups: &'a [Group],
        shared: &'a Shared,
        plan: Plan,
    ) -> Result<Self, CrewError> {
        let cpus = apic_ids.len();
        if cpus == 0 {
            return Err(CrewError::Empty);
        }
        let too_few_cells = CrewError::TooFewCells { cpus, cells: cells.len() };
        let cells = cells.get(..cpus).ok_or(too_few_cells)?;
        let too_few_groups = CrewError::TooFewGroups { cpus, groups: groups.len() };
        let groups = groups.get(..cpus.div_ceil(GROUP_CPUS)).ok_or(too_few_groups)?;
        let package = plan.sync.package(apic_ids[0]);
        let is_one_package = apic_ids.iter().all(|apic_id| plan.sync.package(*apic_id) == package);
        // Serially, those that are already synchronised are online before the next one asks. CPUs that share fewer real
        // ones cannot all execute at the same time, so they had better not try.
        let stays_to_answer =
            plan.policy != Policy::Serial && !plan.sync.shares_cpus && plan.sync.expects_exchanges(is_one_package);
        Ok(Self { cells, groups, shared, apic_ids, plan, stays_to_answer })
    }

    /// Returns how many CPUs there are, the boot CPU included.
    pub fn count(&self) -> u32 {
        self.cells.len() as u32
    }

    /// Returns the decisions made before the first kick.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The CPU with this number.
    pub fn cell(&self, index: u32) -> Option<&'a CpuCell> {
        self.cells.get(index as usize)
    }

    /// The identifier of the CPU with this number.
    pub fn apic_id(&self, index: u32) -> Option<u32> {
        self.apic_ids.get(index as usize).copied()
    }

    /// Returns the number of the CPU with this identifier. A woken CPU finds its own number by it.
    pub fn index_of(&self, apic_id: u32) -> Option<u32> {
        self.apic_ids.iter().position(|known| *known == apic_id).map(|index| index as u32)
    }

    /// The tree in which each CPU watches its children.
    pub fn tree(&self) -> Tree {
        Tree { count: self.count() }
    }

    /// Returns where a CPU stands; one that does not exist is offline.
    pub fn state(&self, index: u32) -> State {
        self.cell(index).map_or(State::Offline, CpuCell::state)
    }

    /// Returns whether CPUs answer their children's questions about the time before they go online. Where they do not,
    /// the boot CPU answers all, one after the other.
    pub(crate) fn stays_to_answer(&self) -> bool {
        self.stays_to_answer
    }

    /// Returns whether the CPU is in the boot CPU's package.
    pub(crate) fn is_in_boot_package(&self, index: u32) -> bool {
        let package = |index| self.apic_id(index).map(|apic_id| self.plan.sync.package(apic_id));
        package(index) == package(0)
    }

    pub(crate) fn permit_all(&self, permission: u32) {
        self.shared.permitted.store(permission, Ordering::Release);
    }

    pub(crate) fn is_permitted(&self, cell: &CpuCell, permission: u32) -> bool {
        self.shared.permitted.load(Ordering::Acquire) >= permission || cell.permitted() >= permission
    }

    pub(crate) fn note_broadcast(&self, now: u64) {
        self.shared.kicked_at.store(now, Ordering::Release);
    }

    /// Returns the time at which all were kicked by one interrupt; 0 if none was sent.
    pub(crate) fn broadcast_at(&self) -> u64 {
        self.shared.kicked_at.load(Ordering::Acquire)
    }

    /// Notes that the boot CPU waits for these; the arrival of the last one of a group makes it check.
    pub(crate) fn expect(&self, members: &[u32]) {
        for group in self.groups {
            group.expected.store(group.online.load(Ordering::Acquire), Ordering::Release);
        }
        for index in members {
            let group = self.groups.get(*index as usize / GROUP_CPUS);
            group.into_iter().for_each(|group| _ = group.expected.fetch_add(1, Ordering::AcqRel));
        }
    }

    /// Notes that a CPU that was expected will not arrive.
    pub(crate) fn expect_no_more(&self, index: u32) {
        let group = self.groups.get(index as usize / GROUP_CPUS);
        group.into_iter().for_each(|group| _ = group.expected.fetch_sub(1, Ordering::AcqRel));
    }

    /// Counts an arrival. Returns whether it is the last that the boot CPU waits for in this group.
    pub(crate) fn count_online(&self, index: u32) -> bool {
        self.groups.get(index as usize / GROUP_CPUS).is_some_and(|group| {
            let online = group.online.fetch_add(1, Ordering::AcqRel) + 1;
            online >= group.expected.load(Ordering::Acquire)
        })
    }

    /// Returns how many have gone online since the tables were made.
    pub fn online(&self) -> u32 {
        self.groups.iter().map(|group| group.online.load(Ordering::Acquire)).sum()
    }

    /// Notes that CPU `index` asks the boot CPU for its time.
    pub(crate) fn request_answer(&self, index: u32) {
        if let Some(group) = self.groups.get(index as usize / GROUP_CPUS) {
            group.asking.fetch_or(1 << (index as usize % GROUP_CPUS), Ordering::AcqRel);
        }
    }

    /// Returns the CPUs that ask the boot CPU for its time; each is returned once for each time that it asked.
    pub(crate) fn take_requests(&self) -> impl Iterator<Item = u32> + use<'a> {
        (0..).step_by(GROUP_CPUS).zip(self.groups).flat_map(|(first, group)| {
            let is_asked = group.asking.load(Ordering::Acquire) != 0;
            let requests = if is_asked { group.asking.swap(0, Ordering::AcqRel) } else { 0 };
            (0..GROUP_CPUS as u32).filter(move |bit| requests >> bit & 1 != 0).map(move |bit| first + bit)
        })
    }

    /// Wakes the CPU if it sleeps: its condition may have changed.
    pub(crate) fn rouse(&self, index: u32, by: &mut impl Wake) {
        if self.cell(index).is_some_and(CpuCell::must_be_woken) {
            by.wake(index);
        }
    }
}

#[cfg(test)]
#[path = "crew_tests.rs"]
pub(crate) mod tests;

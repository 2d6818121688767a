// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which interrupt of which guest's function a vector of a CPU is, and where each function's interrupts come.
//!
//! The table of each CPU's vectors is read at each interrupt, without a lock. A function's own list ([`Routes`]) is
//! under the function's lock, as are all writes about it: an update reads a function's interrupts from there, and from
//! no table.

use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use iommu::Interrupt;
use vm::devices::pci::assigned::LINE;

use crate::arch::cpu_local::cpu_local;
use crate::arch::device_vectors::VECTORS;
use crate::arch::percpu::{self, BOOT_CPU};

const COUNT: usize = (*VECTORS.end() - *VECTORS.start()) as usize + 1;

cpu_local! {
    /// The use of each vector of the CPU: [`Route`] as a word.
    static ROUTES: [AtomicU64; COUNT] = [const { AtomicU64::new(0) }; COUNT];
}

/// A function that a guest has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The guest's number.
    pub guest: u16,
    /// The number of the function among the guest's.
    pub function: u16,
}

/// The use of a vector of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Unassigned.
    Free,
    /// An interrupt of a function comes by it.
    Open(Owner, u16),
    /// It did until it was moved: an interrupt on its way may still come.
    Moved(Owner, u16),
    /// It did: further interrupts are dropped.
    Closed,
}

impl Route {
    const fn word(self) -> u64 {
        const fn of(kind: u64, owner: Owner, index: u16) -> u64 {
            kind << 48 | (owner.guest as u64) << 32 | (owner.function as u64) << 16 | index as u64
        }
        match self {
            Self::Free => 0,
            Self::Open(owner, index) => of(1, owner, index),
            Self::Moved(owner, index) => of(2, owner, index),
            Self::Closed => 3 << 48,
        }
    }

    const fn from_word(word: u64) -> Self {
        let owner = Owner { guest: (word >> 32) as u16, function: (word >> 16) as u16 };
        match word >> 48 {
            0 => Self::Free,
            1 => Self::Open(owner, word as u16),
            2 => Self::Moved(owner, word as u16),
            _ => Self::Closed,
        }
    }

    fn owner(self) -> Option<Owner> {
        match self {
            Self::Open(owner, _) | Self::Moved(owner, _) => Some(owner),
            Self::Free | Self::Closed => None,
        }
    }
}

/// Returns the use of a vector of the CPU `cpu`.
pub fn find(cpu: u32, vector: u8) -> Route {
    place(cpu, vector).map_or(Route::Free, |place| Route::from_word(place.load(Ordering::Acquire)))
}

/// The open interrupts that come to the CPU `cpu`.
pub fn of_cpu(cpu: u32) -> Vec<(Owner, u16)> {
    let open = |vector| if let Route::Open(owner, index) = find(cpu, vector) { Some((owner, index)) } else { None };
    VECTORS.filter_map(open).collect()
}

/// The boot CPU's vector of a line leads to another function of the guest, which has the same input.
pub fn pass_line(vector: u8, to: Owner) {
    store((BOOT_CPU, vector), Route::Open(to, LINE));
}

/// Returns whether an interrupt of a function can be received so.
pub fn is_possible(interrupt: Interrupt) -> bool {
    cpu_of(interrupt).is_some_and(|cpu| place(cpu, interrupt.vector).is_some())
}

/// A vector of a CPU.
type Way = (u32, u8);

/// An open interrupt of a function.
struct Opened {
    index: u16,
    way: Way,
    /// The one before, by which what was on its way may still come.
    before: Option<Way>,
}

/// The destinations of a function's open interrupts.
pub struct Routes {
    owner: Owner,
    /// By rising index.
    opened: Vec<Opened>,
}

impl Routes {
    /// A function's, of which nothing is open.
    pub const fn new(owner: Owner) -> Self {
        Self { owner, opened: Vec::new() }
    }

    /// The function.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// Takes memory for so many interrupts, since [`Self::adopt`] may not.
    pub fn reserve(&mut self, interrupts: usize) {
        self.opened.reserve(interrupts.saturating_sub(self.opened.len()));
    }

    /// Opens an interrupt, which comes to the boot CPU until it is known which vCPU wants it. `set` programs the IOMMU.
    ///
    /// # Errors
    /// No vector is left, or the error of `set`.
    pub fn open(&mut self, index: u16, set: impl FnOnce(Interrupt) -> Result<(), String>) -> Result<(), String> {
        self.route(index, BOOT_CPU, set)
    }

    /// Lets an open interrupt come to another CPU, unless it does.
    ///
    /// # Errors
    /// No vector is left there, or the error of `set`; its destination is unchanged then.
    pub fn follow(
        &mut self,
        index: u16,
        cpu: u32,
        set: impl FnOnce(Interrupt) -> Result<(), String>,
    ) -> Result<(), String> {
        match self.find(index) {
            Ok(Opened { way: (at, _), .. }) if *at != cpu => self.route(index, cpu, set),
            _ => Ok(()),
        }
    }

    /// Returns the destination of an open interrupt: the CPU's APIC identifier, and the vector there.
    pub fn destination(&self, index: u16) -> Option<Interrupt> {
        let (cpu, vector) = self.find(index).ok()?.way;
        Some(Interrupt { vector, destination: percpu::of(cpu)?.apic_id, is_level: false })
    }

    /// An interrupt is open as the image before has routed it.
    pub fn adopt(&mut self, index: u16, interrupt: Interrupt) {
        let Some(cpu) = cpu_of(interrupt) else { return };
        self.insert(index, (cpu, interrupt.vector));
    }

    /// The line is open by the boot CPU's vector of another function of the guest, which has the same input.
    pub fn join(&mut self, vector: u8) {
        self.insert(LINE, (BOOT_CPU, vector));
    }

    /// Discards adopted interrupts.
    pub fn discard(&mut self) {
        self.end(Route::Free);
    }

    /// Closes all interrupts of the function.
    pub fn close(&mut self) {
        self.end(Route::Closed);
    }

    /// Vectors that another function has adopted since a rehearsal, or shares, belong to that one.
    fn end(&mut self, route: Route) {
        let owner = Some(self.owner);
        let ways = self.opened.drain(..).flat_map(|opened| [Some(opened.way), opened.before]).flatten();
        ways.filter(|(cpu, vector)| find(*cpu, *vector).owner() == owner).for_each(|way| store(way, route));
    }

    fn route(&mut self, index: u16, cpu: u32, set: impl FnOnce(Interrupt) -> Result<(), String>) -> Result<(), String> {
        let destination = percpu::of(cpu).ok_or("the host has no such CPU")?.apic_id;
        // Interrupts by it while the IOMMU is being programmed are this function's already.
        let vector = claim(cpu, Route::Moved(self.owner, index)).ok_or("the CPU has no vector left")?;
        let result = set(Interrupt { vector, destination, is_level: false });
        match result {
            Ok(()) => self.insert(index, (cpu, vector)),
            Err(_) => store((cpu, vector), Route::Closed),
        }
        result
    }

    /// The interrupt comes by this vector from now on; what is on its way by the vector before still counts.
    fn insert(&mut self, index: u16, way: Way) {
        match self.opened.binary_search_by_key(&index, |opened| opened.index) {
            Ok(at) => {
                let opened = &mut self.opened[at];
                opened.before.into_iter().for_each(|way| store(way, Route::Closed));
                store(opened.way, Route::Moved(self.owner, index));
                *opened = Opened { index, way, before: Some(opened.way) };
            }
            Err(at) => self.opened.insert(at, Opened { index, way, before: None }),
        }
        store(way, Route::Open(self.owner, index));
    }

    fn find(&self, index: u16) -> Result<&Opened, usize> {
        let at = self.opened.binary_search_by_key(&index, |opened| opened.index)?;
        Ok(&self.opened[at])
    }
}

fn cpu_of(interrupt: Interrupt) -> Option<u32> {
    percpu::all().find(|cpu| percpu::of(*cpu).is_some_and(|own| own.apic_id == interrupt.destination))
}

/// Claims an unassigned vector of the CPU.
fn claim(cpu: u32, route: Route) -> Option<u8> {
    let mut vectors = VECTORS;
    vectors.find(|&vector| {
        let Some(place) = place(cpu, vector) else { return false };
        let before = place.load(Ordering::Acquire);
        let is_free = matches!(Route::from_word(before), Route::Free | Route::Closed);
        is_free && place.compare_exchange(before, route.word(), Ordering::AcqRel, Ordering::Acquire).is_ok()
    })
}

fn store((cpu, vector): Way, route: Route) {
    if let Some(place) = place(cpu, vector) {
        place.store(route.word(), Ordering::Release);
    }
}

fn place(cpu: u32, vector: u8) -> Option<&'static AtomicU64> {
    ROUTES.of(cpu)?.get(usize::from(vector.checked_sub(*VECTORS.start())?))
}

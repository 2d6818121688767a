// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which interrupt of which guest's function a vector of a CPU is. Read at each interrupt, without a lock; written
//! under the lock of the function that it is about.

use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use iommu::Interrupt;

use crate::arch::cpu_local::cpu_local;
use crate::arch::device_vectors::VECTORS;
use crate::arch::percpu::{self, BOOT_CPU};

const COUNT: usize = (*VECTORS.end() - *VECTORS.start()) as usize + 1;

cpu_local! {
    /// What each vector of the CPU is: [`Route`] as a word.
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

/// What a vector of a CPU is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Nobody's.
    Free,
    /// An interrupt of a function comes by it.
    Open(Owner, u16),
    /// It did until it was moved: what was on its way may still come.
    Moved(Owner, u16),
    /// It did: what still comes is dropped.
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

/// What a vector of the CPU `cpu` is.
pub fn find(cpu: u32, vector: u8) -> Route {
    place(cpu, vector).map_or(Route::Free, |place| Route::from_word(place.load(Ordering::Acquire)))
}

/// Opens an interrupt, which comes to the boot CPU until it is known which vCPU wants it. `set` tells the IOMMU.
///
/// # Errors
/// No vector is left, or what `set` says.
pub fn open(owner: Owner, index: u16, set: impl FnOnce(Interrupt) -> Result<(), String>) -> Result<(), String> {
    route(owner, index, BOOT_CPU, set)
}

/// Lets an open interrupt come to another CPU, unless it does.
///
/// # Errors
/// No vector is left there, or what `set` says; it comes where it came.
pub fn follow(
    owner: Owner,
    index: u16,
    cpu: u32,
    set: impl FnOnce(Interrupt) -> Result<(), String>,
) -> Result<(), String> {
    match current(owner, index) {
        Some((at, _)) if at != cpu => route(owner, index, cpu, set),
        _ => Ok(()),
    }
}

/// The open interrupts that come to the CPU `cpu`.
pub fn of_cpu(cpu: u32) -> Vec<(Owner, u16)> {
    let open = |(_, _, _, route)| if let Route::Open(owner, index) = route { Some((owner, index)) } else { None };
    all().filter(|(at, ..)| *at == cpu).filter_map(open).collect()
}

/// Where an open interrupt comes: the CPU's APIC identifier, and the vector there.
pub fn destination(owner: Owner, index: u16) -> Option<Interrupt> {
    let (cpu, vector) = current(owner, index)?;
    Some(Interrupt { vector, destination: percpu::of(cpu)?.apic_id, is_level: false })
}

/// Returns whether an interrupt of a function can be received so.
pub fn is_possible(interrupt: Interrupt) -> bool {
    cpu_of(interrupt).is_some_and(|cpu| place(cpu, interrupt.vector).is_some())
}

/// An interrupt is open as the image before has routed it.
pub fn adopt(owner: Owner, index: u16, interrupt: Interrupt) {
    if let Some(cpu) = cpu_of(interrupt) {
        store(cpu, interrupt.vector, Route::Open(owner, index));
    }
}

/// Nothing that was adopted for a function counts.
pub fn forget(owner: Owner) {
    for_each_of(owner, Route::Free);
}

/// Nothing comes from a function any more.
pub fn close(owner: Owner) {
    for_each_of(owner, Route::Closed);
}

fn for_each_of(owner: Owner, route: Route) {
    let its = all().filter(|(.., known)| known.owner() == Some(owner));
    its.for_each(|(_, _, place, _)| place.store(route.word(), Ordering::Release));
}

fn cpu_of(interrupt: Interrupt) -> Option<u32> {
    percpu::all().find(|cpu| percpu::of(*cpu).is_some_and(|own| own.apic_id == interrupt.destination))
}

fn route(owner: Owner, index: u16, cpu: u32, set: impl FnOnce(Interrupt) -> Result<(), String>) -> Result<(), String> {
    let destination = percpu::of(cpu).ok_or("the host has no such CPU")?.apic_id;
    // What comes by it while the IOMMU is told is this function's already.
    let vector = claim(cpu, Route::Moved(owner, index)).ok_or("the CPU has no vector left")?;
    let result = set(Interrupt { vector, destination, is_level: false });
    if result.is_err() {
        store(cpu, vector, Route::Closed);
        return result;
    }
    for (at, its_vector, _, known) in all() {
        match known {
            Route::Moved(of, number) if (of, number) == (owner, index) => store(at, its_vector, Route::Closed),
            Route::Open(of, number) if (of, number) == (owner, index) => {
                store(at, its_vector, Route::Moved(of, number))
            }
            _ => {}
        }
    }
    store(cpu, vector, Route::Open(owner, index));
    Ok(())
}

/// A vector of the CPU that was nobody's.
fn claim(cpu: u32, route: Route) -> Option<u8> {
    let mut vectors = VECTORS;
    vectors.find(|&vector| {
        let Some(place) = place(cpu, vector) else { return false };
        let before = place.load(Ordering::Acquire);
        let is_free = matches!(Route::from_word(before), Route::Free | Route::Closed);
        is_free && place.compare_exchange(before, route.word(), Ordering::AcqRel, Ordering::Acquire).is_ok()
    })
}

fn current(owner: Owner, index: u16) -> Option<(u32, u8)> {
    let found = all().find(|(.., route)| *route == Route::Open(owner, index));
    found.map(|(cpu, vector, ..)| (cpu, vector))
}

/// Every CPU's vectors: the CPU, the vector, the word and what it says.
fn all() -> impl Iterator<Item = (u32, u8, &'static AtomicU64, Route)> {
    let of_cpu = |cpu| VECTORS.filter_map(move |vector| Some((cpu, vector, place(cpu, vector)?)));
    let with_route = |(cpu, vector, place): (u32, u8, &'static AtomicU64)| {
        (cpu, vector, place, Route::from_word(place.load(Ordering::Acquire)))
    };
    percpu::all().flat_map(of_cpu).map(with_route)
}

fn store(cpu: u32, vector: u8, route: Route) {
    if let Some(place) = place(cpu, vector) {
        place.store(route.word(), Ordering::Release);
    }
}

fn place(cpu: u32, vector: u8) -> Option<&'static AtomicU64> {
    ROUTES.of(cpu)?.get(usize::from(vector.checked_sub(*VECTORS.start())?))
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each CPU's place for virtual ones: whether it takes any, how many more, and which vCPUs are on the way to it.
//!
//! A vCPU that is sent has its room from then on, so that it finds some when it arrives. A place that is closed takes
//! no vCPU: those on the way by then are still taken out, by the CPU that closed it.
//!
//! This layer does not know what a vCPU is: the guests' layer sends and takes boxes, with their weights.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;

use sched::Weight;
use sched::placement::Load;
use spin::{Mutex, Once};

use crate::arch::percpu;
use crate::arch::virt::Virt;

/// vCPUs that one CPU can hold.
pub const SLOTS: usize = 32;

struct Place {
    is_open: bool,
    /// vCPUs that it holds at most; none until it was first opened.
    room: u32,
    /// Those that are there or on the way.
    held: u32,
    /// Their weights together.
    weight: u32,
    /// A CPU has come online: the vCPUs that belong there go there.
    homecoming: bool,
    /// On the way. Boxed as `Any` because this layer does not know what a vCPU is.
    arrivals: Vec<Box<dyn Any + Send>>,
}

/// One for each CPU that the machine has.
static PLACES: Once<Box<[Mutex<Place>]>> = Once::new();

/// Makes a place for each of so many CPUs, closed.
pub fn prepare(cpus: usize) {
    let closed = || Place { is_open: false, room: 0, held: 0, weight: 0, homecoming: false, arrivals: Vec::new() };
    PLACES.call_once(|| (0..cpus).map(|_| Mutex::new(closed())).collect());
}

fn all() -> &'static [Mutex<Place>] {
    PLACES.get().map_or(&[], |places| places)
}

fn of(cpu: u32) -> Option<&'static Mutex<Place>> {
    all().get(cpu as usize)
}

/// Returns how many vCPUs one can hold: each has an ASID of its own there.
pub fn room(virt: Virt) -> usize {
    SLOTS.min(virt.tags() as usize)
}

/// A CPU takes virtual ones from now on, so many at most.
pub fn open(cpu: u32, room: usize) {
    if let Some(place) = of(cpu) {
        let mut place = place.lock();
        (place.is_open, place.room) = (true, room as u32);
    }
}

/// A CPU takes no more; a vCPU on the way still arrives.
pub fn close(cpu: u32) {
    if let Some(place) = of(cpu) {
        place.lock().is_open = false;
    }
}

/// Takes more again, as many as before.
pub fn reopen(cpu: u32) {
    if let Some(place) = of(cpu) {
        place.lock().is_open = true;
    }
}

/// Returns whether a CPU takes virtual ones.
pub fn is_open(cpu: u32) -> bool {
    of(cpu).is_some_and(|place| place.lock().is_open)
}

/// Returns what those hold and can take that take any.
pub fn loads() -> Vec<Load> {
    let places = all().iter().enumerate().map(|(cpu, place)| (cpu as u32, place.lock()));
    let open = places.filter(|(_, place)| place.is_open);
    open.map(|(cpu, place)| Load { cpu, weight: place.weight, free: place.room.saturating_sub(place.held) }).collect()
}

/// Sends a vCPU of this weight to the CPU `to`; `announce` runs before that CPU can take it. It comes back if that CPU
/// takes no more.
pub fn send<T: Any + Send>(vcpu: Box<T>, weight: Weight, to: u32, announce: impl FnOnce(&T)) -> Result<(), Box<T>> {
    let Some(place) = of(to) else { return Err(vcpu) };
    let mut place = place.lock();
    if !place.is_open || place.held >= place.room {
        return Err(vcpu);
    }
    place.held += 1;
    place.weight = place.weight.saturating_add(u32::from(weight.get()));
    announce(&vcpu);
    place.arrivals.push(vcpu);
    drop(place);
    percpu::wake(to);
    Ok(())
}

/// A vCPU is at a CPU already when this image takes over.
pub fn occupy(cpu: u32, weight: Weight) {
    if let Some(place) = of(cpu) {
        let mut place = place.lock();
        place.held += 1;
        place.weight = place.weight.saturating_add(u32::from(weight.get()));
    }
}

/// Takes the vCPUs that have arrived at a CPU; and whether it is to send home those that belong elsewhere.
pub fn take<T: Any + Send>(cpu: u32) -> (Vec<Box<T>>, bool) {
    let Some(place) = of(cpu) else { return (Vec::new(), false) };
    let (arrivals, homecoming) = {
        let mut place = place.lock();
        (core::mem::take(&mut place.arrivals), core::mem::take(&mut place.homecoming))
    };
    (arrivals.into_iter().filter_map(|vcpu| vcpu.downcast::<T>().ok()).collect(), homecoming)
}

/// A vCPU of this weight has left a CPU for good.
pub fn vacate(cpu: u32, weight: Weight) {
    if let Some(place) = of(cpu) {
        let mut place = place.lock();
        place.held = place.held.saturating_sub(1);
        place.weight = place.weight.saturating_sub(u32::from(weight.get()));
    }
}

/// A vCPU at a CPU has another weight from now on.
pub fn reweigh(cpu: u32, from: Weight, to: Weight) {
    if let Some(place) = of(cpu) {
        let mut place = place.lock();
        place.weight = place.weight.saturating_sub(u32::from(from.get())).saturating_add(u32::from(to.get()));
    }
}

/// Asks every CPU to send home the vCPUs that belong elsewhere.
pub fn call_home() {
    for (cpu, place) in (0..).zip(all()) {
        let is_open = {
            let mut place = place.lock();
            place.homecoming = place.is_open;
            place.is_open
        };
        if is_open {
            percpu::wake(cpu);
        }
    }
}

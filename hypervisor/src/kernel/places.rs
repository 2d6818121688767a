// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each processor's place for virtual ones: whether it takes any, how many more, and who is on the way to it.
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

/// Virtual processors that one processor can hold.
pub const SLOTS: usize = 32;

struct Place {
    is_open: bool,
    /// Virtual processors that it holds at most; none until it was first opened.
    room: u32,
    /// Those that are there or on the way.
    held: u32,
    /// Their weights together.
    weight: u32,
    /// A processor has come online: whoever belongs there goes there.
    homecoming: bool,
    /// On the way. Boxed as `Any` because this layer does not know what a vCPU is.
    arrivals: Vec<Box<dyn Any + Send>>,
}

/// One for each processor that the machine has.
static PLACES: Once<Box<[Mutex<Place>]>> = Once::new();

/// Makes a place for each of so many processors, closed.
pub fn prepare(processors: usize) {
    let closed = || Place { is_open: false, room: 0, held: 0, weight: 0, homecoming: false, arrivals: Vec::new() };
    PLACES.call_once(|| (0..processors).map(|_| Mutex::new(closed())).collect());
}

fn all() -> &'static [Mutex<Place>] {
    PLACES.get().map_or(&[], |places| places)
}

fn of(processor: u32) -> Option<&'static Mutex<Place>> {
    all().get(processor as usize)
}

/// How many virtual processors one can hold: each has an address space tag of its own there.
pub fn room(virt: Virt) -> usize {
    SLOTS.min(virt.tags() as usize)
}

/// A processor takes virtual ones from now on, so many at most.
pub fn open(processor: u32, room: usize) {
    if let Some(place) = of(processor) {
        let mut place = place.lock();
        (place.is_open, place.room) = (true, room as u32);
    }
}

/// A processor takes no more; who is on the way still arrives.
pub fn close(processor: u32) {
    if let Some(place) = of(processor) {
        place.lock().is_open = false;
    }
}

/// Takes more again, as many as before.
pub fn reopen(processor: u32) {
    if let Some(place) = of(processor) {
        place.lock().is_open = true;
    }
}

/// Whether a processor takes virtual ones.
pub fn is_open(processor: u32) -> bool {
    of(processor).is_some_and(|place| place.lock().is_open)
}

/// What those hold and can take that take any.
pub fn loads() -> Vec<Load> {
    let places = all().iter().enumerate().map(|(processor, place)| (processor as u32, place.lock()));
    let open = places.filter(|(_, place)| place.is_open);
    open.map(|(processor, place)| Load { processor, weight: place.weight, free: place.room.saturating_sub(place.held) })
        .collect()
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

/// A virtual processor is at a processor already when this image takes over.
pub fn seat(processor: u32, weight: Weight) {
    if let Some(place) = of(processor) {
        let mut place = place.lock();
        place.held += 1;
        place.weight = place.weight.saturating_add(u32::from(weight.get()));
    }
}

/// Takes the vCPUs that have arrived at a CPU; and whether it is to send home those that belong elsewhere.
pub fn take<T: Any + Send>(processor: u32) -> (Vec<Box<T>>, bool) {
    let Some(place) = of(processor) else { return (Vec::new(), false) };
    let (arrivals, homecoming) = {
        let mut place = place.lock();
        (core::mem::take(&mut place.arrivals), core::mem::take(&mut place.homecoming))
    };
    (arrivals.into_iter().filter_map(|vcpu| vcpu.downcast::<T>().ok()).collect(), homecoming)
}

/// A virtual processor of this weight has left a processor for good.
pub fn vacate(processor: u32, weight: Weight) {
    if let Some(place) = of(processor) {
        let mut place = place.lock();
        place.held = place.held.saturating_sub(1);
        place.weight = place.weight.saturating_sub(u32::from(weight.get()));
    }
}

/// Asks every processor to send home who belongs elsewhere.
pub fn call_home() {
    for (processor, place) in (0..).zip(all()) {
        let is_open = {
            let mut place = place.lock();
            place.homecoming = place.is_open;
            place.is_open
        };
        if is_open {
            percpu::wake(processor);
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each processor's place for virtual ones: whether it takes any, how many more, and who is on the way to it.
//!
//! A virtual processor that is sent has its room from then on, so that who arrives always finds some; and it is told to
//! be there ([`Guest::place`](crate::guest::Guest::place)) before it leaves, so that whoever has a message for it wakes
//! the processor at which it will look. A place that is closed takes nobody: what was on the way by then is still taken
//! out, by the processor that closed it.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;

use sched::Weight;
use sched::placement::{Load, place};
use spin::{Mutex, Once};

use crate::arch::percpu;
use crate::arch::virt::Virt;
use crate::instance::Ending;
use crate::task::Task;

/// Virtual processors that one processor can hold.
pub const SLOTS: usize = 32;
/// Times that a place may be closed or filled under a sender's hands before it gives up.
const ATTEMPTS: usize = 64;

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
    /// On the way. Boxed as `Any` because a static cannot be generic; there is only ever one extension.
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
pub fn room(virt: &impl Virt) -> usize {
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

/// Sends a virtual processor to a processor. It comes back if that one takes no more.
pub fn send<V: Virt>(task: Box<Task<V>>, to: u32) -> Result<(), Box<Task<V>>> {
    let Some(place) = of(to) else { return Err(task) };
    let mut place = place.lock();
    if !place.is_open || place.held >= place.room {
        return Err(task);
    }
    place.held += 1;
    place.weight = place.weight.saturating_add(u32::from(task.weight().get()));
    task.instance().guest.place(task.index(), to);
    place.arrivals.push(task);
    drop(place);
    percpu::wake(to);
    Ok(())
}

/// Sends a virtual processor to `own` if that takes it, else to the processor that has least to do. Where none takes
/// it, its guest ends.
pub fn settle<V: Virt>(mut task: Box<Task<V>>, own: u32) {
    for _ in 0..ATTEMPTS {
        let Ok(to) = place(&loads(), Some(own)) else { break };
        match send(task, to) {
            Ok(()) => return,
            Err(back) => task = back,
        }
    }
    task.instance().end(Ending::Crowded);
    task.let_go();
}

/// A virtual processor is at a processor already when this image takes over.
pub fn seat(processor: u32, weight: Weight) {
    if let Some(place) = of(processor) {
        let mut place = place.lock();
        place.held += 1;
        place.weight = place.weight.saturating_add(u32::from(weight.get()));
    }
}

/// Who has arrived at a processor; whether it is to send home who belongs elsewhere.
pub fn take<V: Virt>(processor: u32) -> (Vec<Box<Task<V>>>, bool) {
    let Some(place) = of(processor) else { return (Vec::new(), false) };
    let (arrivals, homecoming) = {
        let mut place = place.lock();
        (core::mem::take(&mut place.arrivals), core::mem::take(&mut place.homecoming))
    };
    (arrivals.into_iter().filter_map(|task| task.downcast::<Task<V>>().ok()).collect(), homecoming)
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests that have this CPU as their home: it starts them, and carries out the operator's orders. A home that goes
//! away leaves its guests to others.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::sync::Arc;

use sched::placement::place;
use wire::{EventKind, VmState};

use super::pausing::{give_up, pause};
use crate::arch::virt::{Unavailable, Virt};
use crate::guests::events::record;
use crate::guests::guest::{Guest, Order};
use crate::guests::instance::Instance;
use crate::guests::instance::ending::{Ending, fail};
use crate::guests::placement;
use crate::guests::slots::GUESTS;
use crate::kernel::{ledger, outcome, places};

/// Every guest that has the CPU `me` as its home.
fn at_home(me: u32) -> impl Iterator<Item = Arc<Guest>> {
    GUESTS.all().filter(move |guest| guest.home() == me)
}

/// Carries out the orders that wait for the CPU `me`.
pub fn carry_out_orders(me: u32, virt: Result<Virt, Unavailable>) {
    for guest in at_home(me) {
        let orders = guest.take_orders();
        for order in Order::ALL.into_iter().filter(|&order| orders & order as u32 != 0) {
            carry_out(&guest, virt, order);
        }
        if orders != 0 {
            guest.note_carried_out();
        }
    }
}

/// Guests that belong elsewhere go there, where that CPU is online.
pub fn send_home(me: u32) {
    for guest in at_home(me).filter(|guest| guest.own_cpu(0) != me) {
        if places::is_open(guest.own_cpu(0)) {
            guest.move_home(guest.own_cpu(0));
        }
    }
}

/// The CPU `me` goes away: each guest's new home is where its first vCPU is, or the one that has least to do. `false`:
/// there is no such CPU.
pub fn move_homes(me: u32) -> bool {
    let loads = places::loads();
    for guest in at_home(me) {
        let first = guest.cpu_of(0);
        let others = loads.iter().copied().filter(|load| load.cpu != me);
        // A home needs no room of a vCPU.
        let others: alloc::vec::Vec<_> = others.map(|load| sched::placement::Load { free: 1, ..load }).collect();
        match place(&others, Some(first)) {
            Ok(home) => guest.move_home(home),
            Err(_) => return false,
        }
    }
    true
}

fn carry_out(guest: &Arc<Guest>, virt: Result<Virt, Unavailable>, order: Order) {
    let running: Option<Arc<Instance>> = guest.run();
    match (order, running, virt) {
        (Order::Start, None, Ok(virt)) => start(guest, virt),
        (Order::Start, None, Err(unavailable)) => fail(guest, unavailable.to_string()),
        (Order::Stop, Some(instance), _) => instance.end(Ending::Stopped),
        (Order::Reset, Some(instance), _) => instance.end(Ending::Reset),
        (Order::GiveUp, Some(instance), _) => give_up(guest, &instance),
        (Order::Pause, Some(instance), _) => pause(guest, &instance, true),
        (Order::Resume, Some(instance), _) => pause(guest, &instance, false),
        _ => {}
    }
}

fn start(guest: &Arc<Guest>, virt: Virt) {
    guest.set_state(VmState::Loading, None);
    let made = match guest.take_staged() {
        Some(staged) => Instance::restore(virt, guest, staged),
        None => Instance::load(virt, guest),
    };
    match made {
        Ok((instance, tasks)) => {
            guest.set_run(Arc::downgrade(&instance));
            guest.set_state(VmState::Running, None);
            record(EventKind::VmStarted { name: guest.config.name.clone() });
            outcome::note_guest_started();
            ledger::background::guest_starts();
            for (index, task) in tasks.into_iter().enumerate() {
                placement::place_or_end(Box::new(task), guest.own_cpu(index));
            }
        }
        Err(reason) => fail(guest, reason),
    }
}

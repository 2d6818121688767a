// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts of functions that guests have, from the host's vector to the guest's vCPU.
//!
//! ```text
//! handler: a bit ──► the CPU's loop ──► route ──► Endpoint::raise ──► the vCPU's mailbox ──► its CPU
//! ```

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use vm::devices::pci::assigned::{LINE, Raised};

use crate::arch::percpu::{self, BOOT_CPU, PerCpu};
use crate::arch::{cpu, device_vectors, strays};
use crate::guests::assigned::functions::Function;
use crate::guests::assigned::lines::{self, Sharing};
use crate::guests::assigned::routes::{self, Owner, Route};
use crate::guests::guest::Guest;
use crate::guests::instance::Instance;
use crate::guests::slots::GUESTS;

/// The calling CPU's vCPUs that check their mailboxes right behind a delivery, and need no kick.
#[derive(Clone, Copy)]
pub enum Checking<'a> {
    /// The one that is entered: its guest's run and its own number.
    Entered(&'a Instance, usize),
    /// Each: those with news are woken.
    All,
    None,
}

/// Takes what functions have sent to the calling CPU and interrupts their guests.
#[inline]
pub fn deliver_raised(me: &PerCpu, checking: Checking<'_>) {
    if me.device_raised.load(Ordering::Relaxed) {
        deliver(me.index, checking);
    }
}

#[inline(never)]
fn deliver(me: u32, checking: Checking<'_>) {
    device_vectors::take(|vector| match routes::find(me, vector) {
        Route::Open(owner, LINE) | Route::Moved(owner, LINE) => interrupt(me, owner, Raised::Line, checking),
        Route::Open(owner, index) | Route::Moved(owner, index) => interrupt(me, owner, Raised::Vector(index), checking),
        Route::Closed => {}
        Route::Free => strays::note_interrupt(vector),
    });
}

fn interrupt(me: u32, owner: Owner, raised: Raised, checking: Checking<'_>) {
    match checking {
        Checking::Entered(run, _) if run.guest.number == u32::from(owner.guest) => {
            interrupt_in(run, me, owner, raised, checking);
        }
        _ => {
            let all = if let Checking::All = checking { Checking::All } else { Checking::None };
            let run = guest_of(owner).and_then(|guest| guest.run::<Instance>());
            run.iter().for_each(|run| interrupt_in(run, me, owner, raised, all));
        }
    }
}

/// `checking` is of this run, if it is of any.
fn interrupt_in(run: &Instance, me: u32, owner: Owner, raised: Raised, checking: Checking<'_>) {
    match raised {
        Raised::Line => line_interrupt(run, me, owner, checking),
        Raised::Vector(_) => _ = raise(run, me, owner, raised, false, checking),
    }
}

/// Functions of the guest may share the line.
fn line_interrupt(run: &Instance, me: u32, owner: Owner, checking: Checking<'_>) {
    let Sharing { open, is_shared } = lines::sharing(owner);
    let raise_all =
        |is_asked| open.iter().fold(false, |any, owner| any | raise(run, me, *owner, Raised::Line, is_asked, checking));
    let is_reported = raise_all(is_shared);
    if is_shared && lines::note_interrupt(owner, is_reported) {
        raise_all(false);
    }
}

/// Interrupts a function's guest; if the function is asked, only if it reports an interrupt for its line. Returns
/// whether it was for this function.
fn raise(run: &Instance, me: u32, owner: Owner, raised: Raised, is_asked: bool, checking: Checking<'_>) -> bool {
    let Some(function) = run.functions().get(owner.function) else { return false };
    let mut wanted = None;
    let mut notify = |vcpu: usize, was_notified: bool| {
        wanted = Some(vcpu);
        if !was_notified && !matches!(checking, Checking::Entered(_, entered) if entered == vcpu) {
            let cpu = run.guest.cpu_to_notify(vcpu);
            if cpu != me || !matches!(checking, Checking::All) {
                percpu::kick(cpu);
            }
        }
    };
    let mut has_interrupted = true;
    run.machine.with_function(&*function, &mut notify, |function, outputs| {
        has_interrupted = !is_asked || lines::has_interrupt(function.physical().place());
        if has_interrupted {
            function.raise(raised, outputs);
        }
    });
    let cpu = wanted.map(|vcpu| run.guest.cpu_of(vcpu)).filter(|cpu| *cpu != me);
    if let (Some(cpu), Raised::Vector(index)) = (cpu, raised) {
        // Without a vector there it comes here as before.
        let _ = follow(&function, index, cpu);
    }
    has_interrupted
}

fn follow(function: &Function, index: u16, cpu: u32) -> Result<(), String> {
    let mut function = function.lock();
    let physical = function.physical();
    let place = physical.place();
    let moved = physical.signals().follow(place, index, cpu);
    moved.map_err(|problem| format!("PCI {place}, interrupt {index}: {problem}"))
}

/// The calling CPU is about to leave the host: what functions send to it comes to the boot CPU from here on, and what
/// has come is delivered.
pub fn leave(me: &PerCpu) {
    for (owner, index) in routes::of_cpu(me.index) {
        let run = guest_of(owner).and_then(|guest| guest.run::<Instance>());
        let function = run.as_ref().and_then(|run| run.functions().get(owner.function));
        if let Some(Err(problem)) = function.map(|function| follow(&function, index, BOOT_CPU)) {
            log::error!("cpu{} leaves, and an interrupt that comes to it is lost: {problem}", me.index);
        }
    }
    cpu::take_pending_interrupts();
    deliver_raised(me, Checking::None);
}

fn guest_of(owner: Owner) -> Option<Arc<Guest>> {
    GUESTS.at(owner.guest.into())
}

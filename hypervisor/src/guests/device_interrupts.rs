// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts of functions that guests have, from the host's vector to the guest's vCPU.
//!
//! ```text
//! handler: a bit ──► the CPU's loop ──► route ──► Endpoint::raise ──► the vCPU's mailbox ──► its CPU
//! ```

use core::sync::atomic::Ordering;

use vm::devices::pci::assigned::Raised;

use crate::arch::percpu::{self, PerCpu};
use crate::arch::{device_vectors, strays};
use crate::guests::assigned::routes::{self, Owner, Route};
use crate::guests::guest::GUESTS;
use crate::guests::instance::Instance;

/// Takes what functions have sent to the calling CPU and interrupts their guests. The vCPU that the CPU is about to
/// enter, `running` (its guest's run and its own number), need not be notified.
#[inline]
pub fn deliver_raised(me: &PerCpu, running: Option<(&Instance, usize)>) {
    if me.device_raised.load(Ordering::Relaxed) {
        deliver(me.index, running);
    }
}

#[inline(never)]
fn deliver(me: u32, running: Option<(&Instance, usize)>) {
    device_vectors::take(|vector| match routes::find(me, vector) {
        Route::Open(owner, index) | Route::Moved(owner, index) => interrupt(me, owner, Raised::Vector(index), running),
        Route::Closed => {}
        Route::Free => strays::note_interrupt(vector),
    });
}

fn interrupt(me: u32, owner: Owner, raised: Raised, running: Option<(&Instance, usize)>) {
    match running {
        Some((run, vcpu)) if run.guest.number == u32::from(owner.guest) => {
            interrupt_in(run, me, owner, raised, Some(vcpu));
        }
        _ => {
            let guest = GUESTS.get().and_then(|guests| guests.all.get(usize::from(owner.guest)));
            let run = guest.and_then(|guest| guest.run::<Instance>());
            run.iter().for_each(|run| interrupt_in(run, me, owner, raised, None));
        }
    }
}

fn interrupt_in(run: &Instance, me: u32, owner: Owner, raised: Raised, running: Option<usize>) {
    let Some(function) = run.functions().get(usize::from(owner.function)) else { return };
    let mut wanted = None;
    let mut notify = |vcpu: usize, was_notified: bool| {
        wanted = Some(vcpu);
        if !was_notified && running != Some(vcpu) {
            percpu::kick(run.guest.cpu_to_tell(vcpu));
        }
    };
    run.machine.with_function(function, &mut notify, |function, outputs| function.raise(raised, outputs));
    let cpu = wanted.map(|vcpu| run.guest.cpu_of(vcpu)).filter(|cpu| *cpu != me);
    if let Some(cpu) = cpu {
        let mut function = function.lock();
        let physical = function.physical();
        let place = physical.place();
        physical.signals().follow(place, raised, cpu);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU's part of an update in the new image: its vCPUs are restored, and once those of all CPUs are, entered.

use alloc::string::String;

use ::update::inbound::{Act, Inbound};
use ::update::takeover::{Takeover, Verdict};
use ::update::trial::TrialPage;

use super::finishing::Finishing;
use super::machine::Machine;
use super::{adoption, leaving};
use crate::arch::switch_pages::trial;
use crate::arch::virt::Virt;
use crate::arch::{cpu, descriptor, fault, timer, trap};
use crate::guests::executive::Executive;

/// Restores the vCPUs that the calling CPU, number `index`, had in the image before. Returns if this image runs from
/// now on; else goes back.
pub fn take_over(executive: &mut Executive, index: u32, page: &'static TrialPage) {
    match arrive(executive, index, page, trial::inherited_takeover(page), Role::Successor) {
        Ok(Verdict::Committed) => {}
        Ok(_) => leaving::go_back(),
        Err(problem) => leaving::give_up(format_args!("{problem}")),
    }
}

/// Does once what [`take_over`] does with guests, with what was saved while they ran, and keeps nothing of it.
///
/// # Errors
/// The vCPU or device that cannot be restored, and why.
pub fn rehearse(virt: Virt, index: u32, page: &TrialPage) -> Result<(), String> {
    let alone = Takeover::new();
    alone.begin(1, u64::MAX);
    let mut executive = Executive::new(Ok(virt));
    let arrived = arrive(&mut executive, index, page, &alone, Role::Rehearsal);
    if arrived.is_ok() {
        executive.choose_as_if();
        // The loop makes one in earnest.
        drop(Finishing::begin());
    }
    // Those that have arrived depart, whatever became of the others.
    executive.take_all(|task| adoption::refill_slot(index, task));
    arrived.map(drop)
}

/// Restores what the CPU `index` had, waits until all CPUs have, and enters its guests if they have. Not inlined, and a
/// rehearsal skips nothing in it but what would take the CPU from the old image: the blackout finds the very code that
/// has run.
#[inline(never)]
fn arrive(
    executive: &mut Executive,
    index: u32,
    page: &TrialPage,
    words: &Takeover,
    role: Role,
) -> Result<Verdict, String> {
    let machine = Machine::new(index, Some(page));
    let mut inbound = Inbound::begin(index);
    loop {
        match inbound.next(words, &machine) {
            Act::Restore => {
                restore(executive, index)?;
                inbound.restored();
            }
            Act::Pause => cpu::pause(),
            Act::TakeOver => {
                enter_guests(executive, index, page, role);
                return Ok(Verdict::Committed);
            }
            Act::GoBack => return Ok(Verdict::RolledBack),
        }
    }
}

fn restore(executive: &mut Executive, index: u32) -> Result<(), String> {
    fault::point!(crate::lifecycle::faults::update::restoring(index));
    adoption::restore(index, |task| executive.take_in(task))?;
    executive.count();
    fault::point!(crate::lifecycle::faults::update::restored(index));
    Ok(())
}

/// Makes the CPU this image's alone, and ready for its guests.
fn enter_guests(executive: &Executive, index: u32, page: &TrialPage, role: Role) {
    if role == Role::Successor {
        // An NMI may come between any two of these: its gate's stack is in the page's TSS before the gate is there,
        // and the own TSS follows.
        trial::name_own_stacks(page, index);
        trap::load();
        descriptor::load(index);
        timer::prepare_this_cpu();
        if let Ok(virt) = executive.virt()
            && let Err(unavailable) = virt.enable()
        {
            // All that it takes was made before.
            panic!("{unavailable}");
        }
    }
    executive.check_timers();
}

/// The part that the image plays when its CPUs arrive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It goes on with the guests if all CPUs arrive.
    Successor,
    /// It only rehearses.
    Rehearsal,
}

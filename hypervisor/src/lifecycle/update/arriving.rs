// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU's part of an update in the new image: its vCPUs are restored, and once those of all CPUs are, entered.

use alloc::string::String;

use ::update::inbound::{Act, Inbound};
use ::update::takeover::{Takeover, Verdict};
use ::update::trial::TrialPage;
use boot::options::UpdateStep;

use super::machine::Machine;
use super::settling::Settling;
use super::{adoption, on_trial};
use crate::arch::switch_pages::trial;
use crate::arch::virt::Virt;
use crate::arch::{cpu, descriptor, timer, trap};
use crate::guests::executive::Executive;

/// Restores the vCPUs that the calling CPU, number `index`, had in the image before. Returns if this image runs from
/// now on; else goes back.
pub fn take_over<V: Virt>(executive: &mut Executive<V>, index: u32, page: &'static TrialPage) {
    match arrive(executive, index, page, trial::inherited_takeover(page), Role::Successor) {
        Ok(Verdict::Committed) => {}
        Ok(_) => on_trial::go_back(),
        Err(problem) => on_trial::give_up(format_args!("{problem}")),
    }
}

/// Does once what [`take_over`] does with guests, with what was saved while they ran, and keeps nothing of it.
///
/// # Errors
/// The vCPU or device that cannot be restored, and why.
pub fn rehearse<V: Virt>(virt: V, index: u32, page: &TrialPage) -> Result<(), String> {
    let alone = Takeover::new();
    alone.begin(1, u64::MAX);
    let mut executive = Executive::new(Ok(virt));
    arrive(&mut executive, index, page, &alone, Role::Understudy)?;
    executive.choose_as_if();
    // The loop makes one in earnest.
    drop(Settling::begin());
    executive.take_all(|task| adoption::refill_slot(index, task));
    Ok(())
}

/// Restores what the CPU `index` had, waits until all CPUs have, and settles in if they have. Not inlined, and a
/// rehearsal skips nothing in it but what would take the CPU from the old image: the blackout finds the very code that
/// has run.
#[inline(never)]
fn arrive<V: Virt>(
    executive: &mut Executive<V>,
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

fn restore<V: Virt>(executive: &mut Executive<V>, index: u32) -> Result<(), String> {
    on_trial::fail_in_blackout_if_asked(index, UpdateStep::Restore);
    if let Ok(virt) = executive.virt() {
        adoption::restore(virt, index, |task| executive.take_in(virt, task))?;
    }
    executive.count();
    on_trial::fail_in_blackout_if_asked(index, UpdateStep::Meet);
    Ok(())
}

/// From here on the CPU is this image's alone.
fn enter_guests<V: Virt>(executive: &Executive<V>, index: u32, page: &TrialPage, role: Role) {
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
    Understudy,
}

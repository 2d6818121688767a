// SPDX-License-Identifier: MIT OR Apache-2.0
//! A processor that comes to this image with its guests: restored, and once all processors have come, entered.

use alloc::string::String;
use core::sync::atomic::Ordering;

use ::update::inbound::{Act, Inbound};
use ::update::takeover::{Takeover, Verdict};
use ::update::trial::TrialPage;
use boot::options::UpdateStep;

use sched::Ticks;

use super::Executive;
use crate::arch::crossing::trial;
use crate::arch::percpu::{BOOT_PROCESSOR, PerCpu};
use crate::arch::virt::{Unavailable, Virt};
use crate::arch::{cpu, descriptor, timer, trap};
use crate::update::machine::Machine;
use crate::update::{Settling, adoption, candidate};

impl<V: Virt> Executive<V> {
    /// The loop of the calling processor, number `index`, with the guests that it had in the image before. Comes back
    /// when the processor leaves the host.
    pub fn take_over(virt: Result<V, Unavailable>, index: u32, page: &'static TrialPage) {
        let mut this = Self::with(virt, PerCpu::current());
        match this.arrive(index, page, trial::inherited_takeover(page), Role::Successor) {
            Ok(Verdict::Committed) => this.turn(),
            Ok(_) => candidate::go_back(),
            Err(problem) => candidate::give_up(format_args!("{problem}")),
        }
    }

    /// Does once what [`Self::take_over`] does with guests, with what was saved while they went on, and keeps nothing
    /// of it.
    ///
    /// # Errors
    /// What cannot be restored.
    pub fn rehearse(virt: V, index: u32, page: &TrialPage) -> Result<(), String> {
        let alone = Takeover::new();
        alone.begin(1, u64::MAX);
        let mut this = Self::with(Ok(virt), PerCpu::current());
        this.arrive(index, page, &alone, Role::Understudy)?;
        this.choose_as_if();
        for slot in 0..this.slots.len() {
            if let Some(task) = this.slots[slot].take() {
                this.queue.remove(slot, Ticks(cpu::tsc()));
                adoption::seat_again(index, task);
            }
        }
        Ok(())
    }

    /// What comes next, as far as it changes nothing but the queue.
    fn choose_as_if(&mut self) {
        if let Some(choice) = self.queue.pick(Ticks(cpu::tsc())) {
            let _ = (self.queue.stolen_ticks(choice.slot), self.earliest_alarm());
        }
    }

    /// Restores what the processor `index` carries, waits until all have, and settles in if they have. Not inlined, and
    /// nothing in it is passed over in a rehearsal but what would take the processor from the old image: the gap finds
    /// the very code that has run.
    #[inline(never)]
    fn arrive(&mut self, index: u32, page: &TrialPage, words: &Takeover, role: Role) -> Result<Verdict, String> {
        let machine = Machine::new(index, Some(page));
        let mut inbound = Inbound::begin(index);
        loop {
            match inbound.next(words, &machine) {
                Act::Restore => {
                    self.restore(index)?;
                    inbound.restored();
                }
                Act::Pause => cpu::pause(),
                Act::TakeOver => {
                    self.settle_in(index, page, role);
                    return Ok(Verdict::Committed);
                }
                Act::GoBack => return Ok(Verdict::RolledBack),
            }
        }
    }

    fn restore(&mut self, index: u32) -> Result<(), String> {
        candidate::fail_in_gap_if_asked(index, UpdateStep::Restore);
        if let Ok(virt) = self.virt {
            adoption::restore(virt, index, |task| self.take_in(virt, task))?;
        }
        self.count();
        candidate::fail_in_gap_if_asked(index, UpdateStep::Meet);
        Ok(())
    }

    /// From here on the processor is this image's alone.
    fn settle_in(&mut self, index: u32, page: &TrialPage, role: Role) {
        if role == Role::Successor {
            // An NMI may come between any two of these: its gate's stack is in the page's TSS before the gate is there,
            // and the own TSS follows.
            trial::name_own_stacks(page, index);
            trap::load();
            descriptor::load(index);
            timer::prepare_this_processor();
            if let Ok(virt) = self.virt
                && let Err(unavailable) = virt.enable()
            {
                // All that it takes was made before.
                panic!("{unavailable}");
            }
        }
        self.settling = (index == BOOT_PROCESSOR).then(Settling::begin);
        self.note_control_alarm();
        // Whatever was due meanwhile is looked at now.
        self.me.timer_fired.store(true, Ordering::Relaxed);
    }
}

/// Who comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Whoever goes on if all do.
    Successor,
    /// One who only tries.
    Understudy,
}

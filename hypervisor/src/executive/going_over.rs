// SPDX-License-Identifier: MIT OR Apache-2.0
//! A processor's part of an update: it leaves its guests, saves them, and goes to the new image. Where that does not
//! come about it is back, and everything is as it was.

use alloc::string::String;
use core::sync::atomic::Ordering;

use ::update::outbound::Act;
use handover::block::BlockMut;
use handover::state::{self, BlockKind};
use sched::{State, Ticks};

use super::Executive;
use crate::arch::cpu;
use crate::arch::percpu::BOOT_PROCESSOR;
use crate::arch::virt::Virt;
use crate::guest::GUESTS;
use crate::instance::Instance;
use crate::update::{self, Blocks, Gap};

impl<V: Virt> Executive<V> {
    /// Goes to the gap, if that is open for this processor. Comes back only if all stay.
    pub(super) fn go_over(&mut self) {
        if let Some(gap) = update::current_gap().as_ref() {
            // What went wrong has been told to the others before they came back.
            let _ = self.cross(gap);
        }
    }

    /// Does once, alone and while guests go on, what it will do in the gap, if that is wanted: up to the new image.
    pub(super) fn draft(&mut self) {
        update::take_draft(self.me.index, |gap| self.cross(gap));
    }

    /// From its guests to the new image, and back if that is how it ends; what it could not save. `None` if it has been
    /// there. Not inlined: the blackout finds the very code that the rehearsal has run.
    #[inline(never)]
    fn cross(&mut self, gap: &Gap) -> Option<Result<(), String>> {
        let mut way = gap.enter(self.me.index)?;
        let mut saved = Ok(());
        loop {
            match way.next() {
                Act::Continue => {}
                Act::Pause => cpu::pause(),
                Act::LeaveGuests => self.leave_guests(),
                Act::Save => {
                    self.queue.lose(Ticks(cpu::tsc()));
                    saved = self.save(gap);
                    way.saved(&saved);
                }
                Act::Lend => way.lend(),
                Act::NoteReturn => way.note_return(),
                Act::Lost => panic!("a processor did not come back from an image on trial"),
                Act::Done => break,
            }
        }
        self.queue.lose(Ticks(cpu::tsc()));
        // Whatever was due meanwhile is looked at now.
        self.me.timer_fired.store(true, Ordering::Relaxed);
        self.me.work_pending.store(true, Ordering::Relaxed);
        Some(saved)
    }

    fn leave_guests(&mut self) {
        self.queue.account(Ticks(cpu::tsc()));
        if let Ok(virt) = self.virt {
            self.unload(virt);
        }
    }

    fn save(&self, gap: &Gap) -> Result<(), String> {
        self.save_vcpus(gap.blocks())?;
        self.save_shared(gap.blocks())?;
        self.save_host(gap)
    }

    fn save_vcpus(&self, blocks: &Blocks) -> Result<(), String> {
        if let Ok(virt) = self.virt {
            for (slot, task) in self.slots.iter().enumerate() {
                let Some(task) = task else { continue };
                let wants_to_run = self.queue.state(slot).is_some_and(|state| state != State::Blocked);
                let stolen = self.queue.stolen_ticks(slot).0;
                let block = blocks.block(BlockKind::Vcpu, task.owner()).ok_or("a virtual processor has no block")?;
                block.with(|bytes| task.save(virt, bytes, blocks.version, stolen, wants_to_run))?;
            }
        }
        Ok(())
    }

    fn save_host(&self, gap: &Gap) -> Result<(), String> {
        match &self.control {
            Some(control) if self.me.index == BOOT_PROCESSOR => gap.save_host(&control.conversation()),
            _ => Ok(()),
        }
    }

    /// What the virtual processors of a guest share is saved by its home.
    fn save_shared(&self, blocks: &Blocks) -> Result<(), String> {
        let guests = GUESTS.get().map_or(&[][..], |guests| &guests.all);
        for guest in guests.iter().filter(|guest| guest.home() == self.me.index) {
            let Some(run) = guest.run::<Instance<V>>() else { continue };
            let owner = handover::block::Owner { guest: guest.number, vcpu: 0 };
            let no_room = |_| "its devices find no room";
            let block = blocks.block(BlockKind::Devices, owner).ok_or("its devices have no block")?;
            block.with(|bytes| {
                let mut block =
                    BlockMut::<state::Devices>::begin(bytes, owner, blocks.version).map_err(|_| no_room(()))?;
                let (into, tail) = block.parts().map_err(|_| no_room(()))?;
                let used = run.machine.save_devices(into, tail).map_err(|_| no_room(()))?;
                block.finish(used).map_err(|_| no_room(()))
            })?;
            let block = blocks.block(BlockKind::Console, owner).ok_or("its console has no block")?;
            block.with(|bytes| guest.save_console(bytes, owner, blocks.version))?;
        }
        Ok(())
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU's part of an update in the old image: it leaves its guests, saves them, and goes to the new image. Where that
//! does not come about it is back, and everything is as it was.

use alloc::string::String;

use ::update::outbound::Act;
use handover::block::BlockMut;
use handover::state::{self, BlockKind};

use super::blackout::{self, HostBlackout};
use super::blocks::Blocks;
use super::drafts;
use crate::arch::cpu;
use crate::arch::percpu::{BOOT_CPU, PerCpu};
use crate::guests::device_interrupts::{self, Checking};
use crate::guests::executive::Executive;
use crate::guests::instance::Instance;
use crate::guests::slots::GUESTS;
use crate::kernel::inherited::{ChannelState, ControlStreams};

/// Returns the control channel's sessions, on the CPU that serves the channel.
pub type GetState<'a> = &'a dyn Fn() -> Option<(ChannelState, ControlStreams)>;

/// Goes to the blackout, if one has begun for this CPU. Returns only if all CPUs stay.
pub fn switch_over(executive: &mut Executive, get_state: GetState<'_>) {
    if let Some(blackout) = blackout::current().as_ref() {
        // The other CPUs have learnt what went wrong before they came back.
        let _ = cross(executive, blackout, get_state);
    }
}

/// Does once, alone and while guests run, what the CPU will do in the blackout, if that is wanted: up to the new image.
pub fn draft(executive: &mut Executive, get_state: GetState<'_>) {
    drafts::take(executive.index(), |blackout| cross(executive, blackout, get_state));
}

/// From its guests to the new image, and back if that is how it ends; the problem if it could not save them. `None` if
/// it has been there. Not inlined: the blackout finds the very code that the rehearsal has run.
#[inline(never)]
fn cross(executive: &mut Executive, blackout: &HostBlackout, get_state: GetState<'_>) -> Option<Result<(), String>> {
    let mut way = blackout.enter(executive.index())?;
    let mut saved = Ok(());
    loop {
        match way.next() {
            Act::Continue => {}
            Act::Pause => cpu::pause(),
            Act::LeaveGuests => {
                executive.account();
                executive.leave_guests();
                // Interrupts from here on wait in the local APIC.
                device_interrupts::deliver_raised(PerCpu::current(), Checking::None);
            }
            Act::Save => {
                executive.lose();
                saved = save(executive, blackout, get_state);
                way.saved(&saved);
            }
            Act::Lend => way.lend(),
            Act::NoteReturn => way.note_return(),
            Act::Lost => panic!("a CPU did not come back from an image on trial"),
            Act::Done => break,
        }
    }
    executive.return_to_guests();
    executive.lose();
    executive.check_everything();
    Some(saved)
}

fn save(executive: &Executive, blackout: &HostBlackout, get_state: GetState<'_>) -> Result<(), String> {
    save_vcpus(executive, blackout.blocks())?;
    save_shared(executive.index(), blackout.blocks())?;
    match get_state() {
        Some((channel_state, streams)) if executive.index() == BOOT_CPU => blackout.save_host(&channel_state, &streams),
        _ => Ok(()),
    }
}

fn save_vcpus(executive: &Executive, blocks: &Blocks) -> Result<(), String> {
    for (task, wants_to_run, stolen) in executive.vcpus() {
        let block = blocks.block(BlockKind::Vcpu, task.owner()).ok_or("a vCPU has no block")?;
        block.with(|bytes| task.save(bytes, blocks.version, stolen, wants_to_run))?;
    }
    Ok(())
}

/// Saves the state that a guest's vCPUs share, for every guest that has the CPU `me` as its home.
fn save_shared(me: u32, blocks: &Blocks) -> Result<(), String> {
    for guest in GUESTS.all().filter(|guest| guest.home() == me) {
        let Some(run) = guest.run::<Instance>() else { continue };
        let owner = handover::block::Owner { guest: guest.rank(), vcpu: 0 };
        let no_room = |_| "its devices do not fit into their block";
        let block = blocks.block(BlockKind::Devices, owner).ok_or("its devices have no block")?;
        block.with(|bytes| {
            let mut block = BlockMut::<state::Devices>::begin(bytes, owner, blocks.version).map_err(|_| no_room(()))?;
            let (into, tail) = block.parts().map_err(|_| no_room(()))?;
            let used = run.machine.save_devices(into, tail, blocks.reader).map_err(|_| no_room(()))?;
            block.finish(used).map_err(|_| no_room(()))
        })?;
        let block = blocks.block(BlockKind::Console, owner).ok_or("its console has no block")?;
        block.with(|bytes| guest.save_console(bytes, owner, blocks.version))?;
    }
    Ok(())
}

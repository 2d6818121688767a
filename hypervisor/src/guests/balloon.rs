// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's balloon: the way by which memory on demand goes back to the host.
//!
//! ```text
//! exit: notification ──► the vCPU's turn: blocks hidden ──► every CPU with a vCPU of the guest: TLB flushed
//!                        the vCPU's turn: chain completed ◄── first vCPU woken ◄── the last one: frames released
//! ```

use alloc::string::{String, ToString as _};
use alloc::sync::Arc;

use demand::SPARES;
use spin::Mutex;
use vm::devices::balloon::{Balloon, Frees};
use vm::devices::pci::{Endpoint, Slot};
use vm::devices::virtio::{Virtio, in_slot};
use vm::machine::Machine;

use crate::arch::guest_memory::{GuestBlocks, GuestRam};
use crate::arch::virt::Space;
use crate::arch::{cpu, percpu, timer};
use crate::guests::forwarding::{self, Kick, Run};
use crate::guests::guest::Guest;

const SLOT: Slot = Slot(27 << 3);
/// The guest executes for so long before the device is tried again, where it has more or an update is under way.
const PAUSE_US: u64 = 1_000;

/// The balloon on its guest's bus.
pub type Device = Arc<Mutex<Endpoint<Virtio<Balloon<Memory>>>>>;

/// A guest's memory, as its balloon frees it.
pub struct Memory {
    guest: Arc<Guest>,
    space: Arc<Space>,
    /// `None`: its memory is not on demand, although its configuration states it: it was restored from a file.
    blocks: Option<Arc<GuestBlocks>>,
}

impl Frees for Memory {
    fn hide(&mut self, gpa: u64, bytes: u64) -> bool {
        let Some(blocks) = &self.blocks else { return true };
        let mut has_hidden = false;
        let is_done = blocks.hide(gpa, bytes, |gpa| {
            has_hidden = true;
            // A block that was never shown is hidden.
            let _ = self.space.hide(gpa, demand::BLOCK_BYTES);
            self.space.changes()
        });
        if has_hidden {
            (0..self.guest.config.vcpus as usize).for_each(|vcpu| percpu::wake(self.guest.cpu_to_notify(vcpu)));
        }
        is_done
    }

    fn is_releasing(&mut self) -> bool {
        self.blocks.as_ref().is_some_and(|blocks| blocks.has_hidden())
    }

    fn spares_used(&self) -> [Option<u32>; SPARES] {
        self.blocks.as_ref().map_or([None; SPARES], |blocks| blocks.spares_used())
    }

    fn use_spares(&mut self, used: [Option<u32>; SPARES]) {
        self.blocks.iter().for_each(|blocks| blocks.use_spares(used));
    }
}

/// Puts a guest's balloon on its bus, if its memory is on demand.
///
/// # Errors
/// Why there can be none.
pub fn attach(
    guest: &Arc<Guest>,
    machine: &mut Machine<GuestRam>,
    space: &Arc<Space>,
) -> Result<Option<Device>, String> {
    if guest.config.assured_bytes.is_none() {
        return Ok(None);
    }
    let blocks = machine.memory().blocks().cloned();
    let memory = Memory { guest: guest.clone(), space: space.clone(), blocks };
    let bad = "virtio-balloon: its slot on the guest's bus is taken";
    let device = in_slot(SLOT, Balloon::new(memory)).map_err(|_| bad.to_string())?;
    machine.bus_mut().attach_function(device).map(Some).map_err(|_| bad.to_string())
}

/// Works for a guest's balloon, in a vCPU's time. Returns when it is to go on; `None`: when there is a reason.
pub fn work(run: &dyn Run, vcpu: usize, device: &Device) -> Option<u64> {
    let mut has_more = false;
    forwarding::work(run, Kick::But(vcpu), device, &mut |balloon, io| {
        has_more = balloon.work(io)?;
        Ok(())
    });
    has_more.then(|| cpu::tsc().saturating_add(timer::us_to_ticks(PAUSE_US)))
}

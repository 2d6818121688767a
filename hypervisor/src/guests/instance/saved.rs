// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of a paused run, but for its memory, saved for a client that restores the guest later: blocks of the
//! hand-over, one behind the other.
//!
//! ```text
//! client asks ──► unplug: frames and packets are dropped ──► each CPU saves its vCPUs ──► devices ──► client reads
//! ```
//!
//! Nothing but its own vCPUs, which stand still, changes the run from the moment at which it is unplugged.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use handover::VERSION;
use handover::block::{BlockMut, HEAD_BYTES, Owner};
use handover::image::Reader;
use handover::state::{self, BlockState};
use units::PAGE_BYTES;
use vm::memory::GuestMemory as _;

use super::Instance;
use crate::arch::{clock, cpu, timer};
use crate::guests::sockets;

/// Bytes of the policy's block behind its first page: CPUID's leaves.
const POLICY_TAIL_BYTES: usize = 2 * PAGE_BYTES as usize;
const OWNER: Owner = Owner { guest: 0, vcpu: 0 };

impl Instance {
    /// The state of the run, which is paused, for a client; `None` while CPUs are still saving it.
    ///
    /// # Errors
    /// It cannot be saved.
    pub fn saved(&self) -> Result<Option<Arc<[u8]>>, String> {
        if !self.functions.is_empty() {
            return Err("it has PCI functions, whose state is the hardware's".to_string());
        }
        if self.saving.begin() {
            self.unplug();
            self.wake_cpus();
        }
        let mut whole = self.saving.whole.lock();
        if whole.is_none()
            && let Some(vcpus) = self.saving.vcpus()
        {
            *whole = Some(self.put_together(&vcpus?)?);
        }
        Ok(whole.clone())
    }

    /// The client has what it wants, or the guest goes on without.
    pub fn end_saving(self: &Arc<Self>) {
        if self.saving.end() {
            self.plug();
            sockets::reset_own(&**self, self.socket.as_ref());
        }
    }

    fn put_together(&self, vcpus: &[u8]) -> Result<Arc<[u8]>, String> {
        let machine = &self.machine;
        let moment = block::<state::Saved>(0, |moment, _| {
            *moment = state::Saved {
                tsc: cpu::tsc().into(),
                tsc_hz: timer::tsc_hz().into(),
                unix_ns: clock::unix_ns().into(),
                memory_bytes: machine.memory().size_bytes().into(),
            };
            Ok(0)
        })?;
        let full = |what: &str| format!("its {what} do not fit into their block");
        let policy = block::<state::Policy>(POLICY_TAIL_BYTES, |policy, tail| {
            machine.save_policy(policy, tail).map_err(|_| full("CPUID leaves"))
        })?;
        let devices = block::<state::Devices>(machine.devices_tail_bytes(), |devices, tail| {
            machine.save_devices(devices, tail, Reader::of(VERSION)).map_err(|_| full("devices"))
        })?;
        Ok([&moment, &policy, vcpus, &devices].concat().into())
    }
}

/// A block, filled; `fill` returns the bytes of the tail that are in use.
fn block<T: BlockState>(
    tail_bytes: usize,
    fill: impl FnOnce(&mut T, &mut [u8]) -> Result<usize, String>,
) -> Result<Vec<u8>, String> {
    let text = |error: handover::block::BlockError| error.to_string();
    let mut bytes = vec![0; HEAD_BYTES + tail_bytes];
    let mut block = BlockMut::<T>::begin(&mut bytes, OWNER, VERSION).map_err(text)?;
    let (state, tail) = block.parts().map_err(text)?;
    let used = fill(state, tail)?;
    block.finish(used).map_err(text)?;
    bytes.truncate(HEAD_BYTES + used);
    Ok(bytes)
}

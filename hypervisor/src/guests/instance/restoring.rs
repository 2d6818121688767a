// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run of a guest that goes on from what was saved of it, perhaps on another host. All of its state is a client's
//! input.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use handover::block::{self, BlockError, Owner, split_first};
use handover::state::{self, BlockState};
use vm::cpu::models::missing_of;
use vm::machine::{move_policy, move_vcpu};

use super::Instance;
use super::config::host_cpuid;
use crate::arch::virt::Virt;
use crate::arch::{clock, cpu, timer};
use crate::guests::guest::Guest;
use crate::guests::sockets;
use crate::guests::staged::Staged;
use crate::guests::task::Task;

/// The time stamp counter may run so much faster or slower, in thousandths: as clocks may that a guest corrects.
const TSC_TOLERANCE: u64 = 1;

/// The blocks of a state that are still to be read.
struct Blocks<'a>(&'a [u8]);

impl<'a> Blocks<'a> {
    /// Reads the next one.
    fn next<T: BlockState>(&mut self, vcpu: u32) -> Result<(T, &'a [u8]), String> {
        let damaged = |error: BlockError| format!("its saved state ({}): {error}", T::NAME);
        let (first, rest) = split_first(self.0).ok_or_else(|| damaged(BlockError::Unfinished))?;
        self.0 = rest;
        block::open(first, Owner { guest: 0, vcpu }).map_err(damaged)
    }
}

impl Instance {
    /// A guest that goes on from what was saved of it; gives its vCPUs.
    ///
    /// # Errors
    /// It cannot go on from that, or not on this host: the reason.
    pub fn restore(virt: Virt, guest: &Arc<Guest>, staged: Staged) -> Result<(Arc<Self>, Vec<Task>), String> {
        let mut blocks = Blocks(&staged.state);
        let (moment, _) = blocks.next::<state::Saved>(0)?;
        check_clock(&moment)?;
        let (mut policy, leaves) = blocks.next::<state::Policy>(0)?;
        check_size(guest, &moment, &policy)?;
        move_policy(&mut policy, clock::unix_ns().saturating_sub(moment.unix_ns.get()));
        let (instance, mut tasks) = Self::adopt(virt, guest, staged.memory, (&policy, leaves), &[])?;
        match instance.take_over(&mut tasks, &moment, blocks) {
            Ok(()) => Ok((instance, tasks)),
            Err(reason) => {
                instance.disconnect();
                Err(reason)
            }
        }
    }

    fn take_over(
        self: &Arc<Self>,
        tasks: &mut [Task],
        moment: &state::Saved,
        mut blocks: Blocks<'_>,
    ) -> Result<(), String> {
        let missing: Vec<&str> = missing_of(self.machine.cpuid(), &host_cpuid).collect();
        if !missing.is_empty() {
            return Err(format!("it was shown {}, which this host's CPU lacks", missing.join(", ")));
        }
        let ticks = cpu::tsc().wrapping_sub(moment.tsc.get());
        for (number, task) in (0..).zip(tasks) {
            let (mut vcpu, tail) = blocks.next::<state::Vcpu>(number)?;
            move_vcpu(&mut vcpu, ticks);
            task.take_over(&vcpu, tail).map_err(|problem| format!("vCPU {number}: {problem}"))?;
        }
        let (devices, tail) = blocks.next::<state::Devices>(0)?;
        self.machine.restore_devices(&devices, tail).map_err(|error| error.to_string())?;
        self.plug();
        self.announce();
        sockets::reset_own(&**self, self.socket.as_ref());
        Ok(())
    }
}

fn check_clock(moment: &state::Saved) -> Result<(), String> {
    let (was, is) = (moment.tsc_hz.get(), timer::tsc_hz());
    if was.abs_diff(is) <= is / 1000 * TSC_TOLERANCE {
        return Ok(());
    }
    Err(format!("its time stamp counter ran at {was} Hz, and this host's runs at {is} Hz"))
}

fn check_size(guest: &Guest, moment: &state::Saved, policy: &state::Policy) -> Result<(), String> {
    let was = (policy.vcpus.get(), moment.memory_bytes.get());
    let is = (guest.config.vcpus, guest.config.memory_bytes);
    if was == is {
        return Ok(());
    }
    let text = |(vcpus, bytes): (u32, u64)| format!("{vcpus} vCPUs and {}", units::ByteSize(bytes));
    Err(format!("it was saved with {}, and is configured to have {}", text(was), text(is)))
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sending a vCPU to a CPU's [place](places).
//!
//! A vCPU's guest names the new CPU before the vCPU leaves ([`Guest::place`](crate::guests::guest::Guest::place)), so
//! that a sender of a message wakes the CPU that will read it.

use alloc::boxed::Box;

use sched::placement::place;

use crate::arch::virt::Virt;
use crate::guests::instance::Ending;
use crate::guests::task::Task;
use crate::kernel::places;

/// Times that a place may be closed or filled under a sender's hands before it gives up.
const ATTEMPTS: usize = 64;

/// Sends a vCPU to a CPU. It comes back if that CPU takes no more.
pub fn send<V: Virt>(task: Box<Task<V>>, to: u32) -> Result<(), Box<Task<V>>> {
    let weight = task.weight();
    places::send(task, weight, to, |task| task.instance().guest.place(task.index(), to))
}

/// Sends a vCPU to the CPU `own` if that takes it, else to the least loaded one. Where no CPU takes it, its guest ends.
pub fn place_or_end<V: Virt>(mut task: Box<Task<V>>, own: u32) {
    for _ in 0..ATTEMPTS {
        let Ok(to) = place(&places::loads(), Some(own)) else { break };
        match send(task, to) {
            Ok(()) => return,
            Err(back) => task = back,
        }
    }
    task.instance().end(Ending::Crowded);
    task.let_go();
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A vCPU that touches memory on demand.

use demand::{BLOCK_BYTES, Shown};
use units::{PhysAddr, PhysRange};
use vm::addr::Gpa;

use super::{Pause, Task};
use crate::arch::{cpu, timer};

/// A vCPU tries again after so long where the memory cannot be there yet: a hidden block's release is over, or an
/// update.
const RETRY_US: u64 = 200;
/// Likewise where the host has no memory: another guest has to leave some.
const NO_MEMORY_RETRY_US: u64 = 10_000;

impl Task {
    /// Shows the guest the memory that it has touched. Returns the reason why it does not go on if that is not possible
    /// now.
    #[cold]
    pub(super) fn touch(&mut self, gpa: Gpa) -> Option<Pause> {
        let blocks = self.instance.machine.memory().blocks()?;
        let space = self.instance.space();
        let shown = blocks.touch(gpa.0, |gpa, physical| {
            let frame = PhysRange::from_start(PhysAddr(physical), BLOCK_BYTES);
            frame.is_some_and(|frame| space.show_memory(gpa, frame).is_ok())
        });
        let retry_us = match shown {
            Shown::Now => return None,
            Shown::Later => RETRY_US,
            Shown::NoMemory => {
                self.instance.guest.note_waits_for_memory();
                NO_MEMORY_RETRY_US
            }
        };
        Some(self.rest(cpu::tsc() + timer::us_to_ticks(retry_us)))
    }
}

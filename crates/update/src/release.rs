// SPDX-License-Identifier: MIT OR Apache-2.0
//! In which order a new image frees the memory that the image before has kept for it.
//!
//! ```text
//! log copied ─▶ CPUs that were left behind are sent INIT ─▶ switch pages, log, blocks, hand-over block become free
//! ```
//!
//! A CPU that was left behind halts in the switch pages: an NMI would make it read its mailbox there, so it is reset
//! before they have another owner. The log is read before its memory is free. The hand-over block, which names all the
//! others, is the last.

use alloc::vec::Vec;

use handover::layout::Purpose;

/// The purposes of memory that is freed, in this order.
const PURPOSES: [Purpose; 4] = [Purpose::SwitchPages, Purpose::Log, Purpose::Blocks, Purpose::Record];

/// The caller's next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Copies what the image before has logged.
    CopyLog,
    /// Sends the CPU with this APIC identifier INIT, after which it needs no memory.
    Reset(u32),
    /// Frees what is kept for this purpose.
    Free(Purpose),
}

/// The release's progress.
#[derive(Debug)]
pub struct Release {
    left_behind: Vec<u32>,
    step: usize,
}

impl Release {
    /// Begins once every CPU that takes part is online. `left_behind`: see [`crate::parked::left_behind`].
    #[must_use]
    pub fn begin(left_behind: Vec<u32>) -> Self {
        Self { left_behind, step: 0 }
    }
}

impl Iterator for Release {
    type Item = Act;

    /// Returns the next act; `None` once nothing is left.
    fn next(&mut self) -> Option<Act> {
        let resets = self.left_behind.iter().map(|apic_id| Act::Reset(*apic_id));
        let frees = PURPOSES.iter().map(|purpose| Act::Free(*purpose));
        let act = core::iter::once(Act::CopyLog).chain(resets).chain(frees).nth(self.step);
        self.step += 1;
        act
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! One frame's record.

use crate::nodes::Node;
use crate::state::FrameState;
use crate::sync::{AtomicU64, Ordering};

/// Bytes of a record: a line of the cache, as elsewhere.
pub const RECORD_BYTES: u64 = 64;
const WORDS: usize = 8;

/// One frame's record: its owner, its node, and the start of the run of frames with which its owner was set.
/// The rest of the line is zero.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Record([AtomicU64; WORDS]);

const _: () = assert!(cfg!(test) || size_of::<Record>() as u64 == RECORD_BYTES);

impl Default for Record {
    /// Returns one that was not written: its content does not matter.
    fn default() -> Self {
        Self(core::array::from_fn(|_| AtomicU64::new(u64::MAX)))
    }
}

impl Record {
    /// Writes all of it. Store by store and always inline: the baseline writes millions of these, and is to be quick at
    /// it.
    #[inline(always)]
    pub(super) fn write(&self, state: FrameState, node: Node, head: u64) {
        let [first, second, c, d, e, f, g, h] = &self.0;
        first.store(state as u64 | u64::from(node) << 8, Ordering::Relaxed);
        second.store(head, Ordering::Relaxed);
        c.store(0, Ordering::Relaxed);
        d.store(0, Ordering::Relaxed);
        e.store(0, Ordering::Relaxed);
        f.store(0, Ordering::Relaxed);
        g.store(0, Ordering::Relaxed);
        h.store(0, Ordering::Relaxed);
    }

    /// Returns the owner of a frame.
    pub(super) fn state(&self) -> FrameState {
        FrameState::from_number(self.0[0].load(Ordering::Relaxed) as u8)
    }

    /// Returns the number of the first frame of its run.
    #[cfg(test)]
    pub(super) fn head(&self) -> u64 {
        self.0[1].load(Ordering::Relaxed)
    }
}

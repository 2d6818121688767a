// SPDX-License-Identifier: MIT OR Apache-2.0
//! The owner of the end, the CPUs that failed beside it, and those that have stopped.

use crate::set::{CpuSet, SharedSet};
use crate::sync::{AtomicU32, Ordering};

/// Nobody owns the end: the host lives. Else the owner's number plus one.
const NOBODY: u32 = 0;

/// The end of a host; there is one.
pub struct Ending {
    owner: AtomicU32,
    failed_too: SharedSet,
    stopped: SharedSet,
}

/// Role of a CPU that has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is the first: it reports, and ends the host.
    Owner,
    /// It is the owner, and has failed again on the way: [`crate::Descent`] says what is left to do.
    Again,
    /// Another one owns the end: it goes quiet, and the owner names it.
    Bystander {
        /// The owner of the end.
        owner: u32,
    },
}

impl Ending {
    crate::sync::const_new! {
        /// The host lives.
        {
            Self { owner: AtomicU32::new(NOBODY), failed_too: SharedSet::new(), stopped: SharedSet::new() }
        }
    }

    /// CPU `cpu` has failed. Exactly one ever becomes the owner.
    pub fn claim(&self, cpu: u32) -> Role {
        let mine = cpu.saturating_add(1);
        match self.owner.compare_exchange(NOBODY, mine, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Role::Owner,
            Err(owner) if owner == mine => Role::Again,
            Err(owner) => {
                self.failed_too.insert(cpu);
                Role::Bystander { owner: owner - 1 }
            }
        }
    }

    /// The owner, once the host ends.
    pub fn owner(&self) -> Option<u32> {
        self.owner.load(Ordering::Acquire).checked_sub(1)
    }

    /// The calling CPU will do nothing more. What it did before (a claim) is seen by the CPU that sees it stopped.
    pub fn has_stopped(&self, cpu: u32) {
        self.stopped.insert(cpu);
    }

    /// The CPUs that have stopped by now.
    pub fn stopped(&self) -> CpuSet {
        self.stopped.get()
    }

    /// The CPUs that failed beside the owner. Complete for all that are in an earlier [`Self::stopped`].
    pub fn failed_too(&self) -> CpuSet {
        self.failed_too.get()
    }
}

impl Default for Ending {
    fn default() -> Self {
        Self::new()
    }
}

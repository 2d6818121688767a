// SPDX-License-Identifier: MIT OR Apache-2.0
//! The owner of the end, the CPUs that failed beside it, and those that have stopped.

use crate::set::{CpuSet, SharedSet};
use crate::sync::{AtomicU32, Ordering};

/// No CPU owns the end: the host lives. Any other value is the owner's number plus one.
const UNOWNED: u32 = 0;

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
    /// It is the owner, and has failed again on the way: [`crate::EndProgress`] returns the steps that are left.
    Again,
    /// Another one owns the end: this CPU stops, and the owner names it.
    Bystander {
        /// The owner of the end.
        owner: u32,
    },
}

impl Ending {
    crate::sync::const_new! {
        /// The host lives.
        {
            Self { owner: AtomicU32::new(UNOWNED), failed_too: SharedSet::new(), stopped: SharedSet::new() }
        }
    }

    /// Notes that CPU `cpu` has failed. Exactly one CPU ever becomes the owner.
    pub fn claim(&self, cpu: u32) -> Role {
        let mine = cpu.saturating_add(1);
        match self.owner.compare_exchange(UNOWNED, mine, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Role::Owner,
            Err(owner) if owner == mine => Role::Again,
            Err(owner) => {
                self.failed_too.insert(cpu);
                Role::Bystander { owner: owner - 1 }
            }
        }
    }

    /// Returns the owner, once the host ends.
    pub fn owner(&self) -> Option<u32> {
        self.owner.load(Ordering::Acquire).checked_sub(1)
    }

    /// Notes that the calling CPU will do nothing more. A CPU that sees it stopped also sees its earlier writes (a
    /// claim).
    pub fn has_stopped(&self, cpu: u32) {
        self.stopped.insert(cpu);
    }

    /// Returns the CPUs that have stopped by now.
    pub fn stopped(&self) -> CpuSet {
        self.stopped.get()
    }

    /// Returns the CPUs that failed beside the owner. Complete for all that are in an earlier [`Self::stopped`].
    pub fn failed_too(&self) -> CpuSet {
        self.failed_too.get()
    }
}

impl Default for Ending {
    fn default() -> Self {
        Self::new()
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory on demand while an update is under way.

use alloc::sync::{Arc, Weak};

use crate::guests::instance::Instance;
use crate::guests::slots::GUESTS;

/// A guest's memory on demand as it was packed. While this exists it does not change, but that spares become blocks.
pub struct Held(Weak<Instance>);

impl Held {
    /// That of a guest's run, which has just been packed.
    pub fn of(run: &Arc<Instance>) -> Self {
        Self(Arc::downgrade(run))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.upgrade().iter().for_each(|run| run.settle_memory());
    }
}

/// The update is over for all guests: this image owns all memory.
pub fn settle_all() {
    GUESTS.all().filter_map(|guest| guest.run::<Instance>()).for_each(|run| run.settle_memory());
}

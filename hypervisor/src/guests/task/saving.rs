// SPDX-License-Identifier: MIT OR Apache-2.0
//! A vCPU of a paused guest, saved for a client.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use handover::VERSION;
use handover::block::{HEAD_BYTES, Owner};

use super::Task;
use crate::guests::instance::saving::VCPU_TAIL_BYTES;

impl Task {
    /// The number of a client's wish for its state, if it is to be saved.
    #[inline]
    pub fn wish_to_be_saved(&self) -> Option<u32> {
        self.instance.saving.wish_for(self.index)
    }

    /// Saves it for this wish, while its guest is paused and it is not loaded.
    #[cold]
    pub fn save_for_client(&self, wish: u32) {
        self.instance.saving.put(self.index, wish, self.saved());
    }

    fn saved(&self) -> Result<Vec<u8>, String> {
        let owner = Owner { guest: 0, vcpu: self.index as u32 };
        let mut bytes = vec![0; HEAD_BYTES + VCPU_TAIL_BYTES];
        let used = self.save_as(owner, &mut bytes, VERSION, (0, false))?;
        bytes.truncate(HEAD_BYTES + used);
        Ok(bytes)
    }
}

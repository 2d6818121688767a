// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests that come from a guest: whatever signs them, they may do no more than the guest was granted.

use alloc::string::{String, ToString};

use wire::{RequestBody, Right, Role};

use crate::denied::Denied;

/// The requests that clients in a guest may send to the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Name of the guest.
    pub guest: String,
    /// The role of its clients.
    pub role: Role,
    /// True if they may type into consoles.
    pub console: bool,
    /// True if they may read memory, registers and frames of guests.
    pub dump: bool,
    /// True if they may assign PCI functions.
    pub devices: bool,
}

impl Grant {
    /// Decides on a request.
    ///
    /// # Errors
    /// It is more than was granted.
    pub fn check(&self, body: &RequestBody) -> Result<(), Denied> {
        let (has, needs) = (self.role, body.role());
        if has < needs {
            return Err(Denied::GuestRole { guest: self.guest.to_string(), has, needs });
        }
        match body.right() {
            Some(needs) if !self.has(needs) => Err(Denied::GuestRight { guest: self.guest.to_string(), needs }),
            _ => Ok(()),
        }
    }

    fn has(&self, right: Right) -> bool {
        match right {
            Right::Console => self.console,
            Right::Dump => self.dump,
            Right::Devices => self.devices,
        }
    }
}

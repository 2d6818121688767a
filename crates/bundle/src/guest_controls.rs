// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fields that version 14 of the manifest adds: what guests may ask of the host.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::manifest::Manifest;
use crate::vsock::GuestControl;

/// The fields that version 14 adds, behind those of the versions before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GuestControls {
    /// [`crate::VsockConfig::control`] of each guest; `None` also where it has no sockets.
    pub control: Vec<Option<GuestControl>>,
}

impl Manifest {
    pub(crate) fn guest_controls(&self) -> GuestControls {
        GuestControls { control: self.guests.iter().map(|guest| guest.vsock.as_ref()?.control).collect() }
    }

    pub(crate) fn has_guest_controls(&self) -> bool {
        self.guests.iter().any(|guest| guest.control().is_some())
    }

    /// Returns the manifest with these rights; `None` if they are of other guests.
    pub(crate) fn with_guest_controls(mut self, added: &GuestControls) -> Option<Self> {
        if added.control.len() != self.guests.len() {
            return None;
        }
        for (guest, control) in self.guests.iter_mut().zip(&added.control) {
            match (&mut guest.vsock, control) {
                (Some(vsock), control) => vsock.control = *control,
                (None, None) => {}
                (None, Some(_)) => return None,
            }
        }
        Some(self)
    }
}

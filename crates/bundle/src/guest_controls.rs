// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fields that versions 13 and 14 of the manifest add, and the manifest: who operates the host.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::control::ControlFields;
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

impl Manifest {
    pub(crate) fn control_fields(&self) -> ControlFields {
        ControlFields { keys: self.host.control_keys.clone(), is_serial_open: self.host.is_serial_open }
    }

    /// Returns the manifest with these keys.
    pub(crate) fn with_control_fields(mut self, fields: ControlFields) -> Self {
        (self.host.control_keys, self.host.is_serial_open) = (fields.keys, fields.is_serial_open);
        self
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manifest's entries for socket devices.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::control::ControlRole;

/// The socket device of a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VsockConfig {
    /// Its context identifier, unique in the bundle.
    pub cid: u32,
    /// The identifiers of the guests to which it may open connections.
    pub peers: Vec<u32>,
    /// The requests that it may send to the host over its sockets; `None`: none.
    pub control: Option<GuestControl>,
}

/// The requests that a guest may send to the host over its sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestControl {
    /// The role of its clients.
    pub role: ControlRole,
    /// Their rights beyond that.
    pub rights: ControlRights,
}

/// Rights over other guests that no role includes where requests come from a guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlRights {
    /// Typing into guests' consoles.
    pub console: bool,
    /// Reading guests' memory, registers and frames.
    pub dump: bool,
    /// Assigning PCI functions.
    pub devices: bool,
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the manifest states of socket devices.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// The socket device of a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VsockConfig {
    /// Its context identifier, unique in the bundle.
    pub cid: u32,
    /// The identifiers of the guests to which it may open connections.
    pub peers: Vec<u32>,
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manifest's entries for socket devices.

use alloc::vec::Vec;

/// The socket device of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VsockConfig {
    /// Its context identifier, unique in the bundle.
    pub cid: u32,
    /// The identifiers of the guests to which it may open connections.
    pub peers: Vec<u32>,
}

impl VsockConfig {
    /// Returns the identifier, and then those of the peers: one list, since a reader of another structure is larger.
    pub(crate) fn list(config: Option<&Self>) -> Vec<u32> {
        config.into_iter().flat_map(|config| core::iter::once(&config.cid).chain(&config.peers)).copied().collect()
    }

    /// Reads the list of [`list`](Self::list); an empty one is no device.
    pub(crate) fn of_list(mut list: Vec<u32>) -> Option<Self> {
        (!list.is_empty()).then(|| Self { cid: list.remove(0), peers: list })
    }
}

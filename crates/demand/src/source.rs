// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host, as memory on demand sees it.

/// The reason for which a block gets a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The guest has less than it was assured: the frame is there.
    Assured,
    /// The guest wants more than that, and can wait.
    More,
    /// A device is to write into it, and cannot wait.
    Device,
}

/// The source of frames, to which they return.
pub trait Source {
    /// Returns the physical address of a frame of [`BLOCK_BYTES`](crate::BLOCK_BYTES) that holds zeros; `None`: there
    /// is none for this claim.
    fn take(&self, claim: Claim) -> Option<u64>;

    /// Takes a frame back; it holds what the guest has left.
    fn release(&self, physical: u64);

    /// Returns whether guests may release single frames: not where free memory is in too many parts.
    fn may_be_parted(&self) -> bool;

    /// The guest lacks this many bytes more (or, if not `is_more`, fewer) of what it was assured.
    fn change_assured(&self, bytes: u64, is_more: bool);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host, as guests' memory sees it.

use demand::Claim;
use frames::{FrameRange, GuestFrames, Node, OutOfMemory};

/// The source of guests' frames, to which they return. The policy (huge pages, NUMA nodes, scrubbing) is above
/// this module, so each guest's memory carries it.
#[derive(Debug)]
pub struct FrameSource {
    /// Gives frames for a guest in one piece, near a NUMA node.
    pub allocate: fn(bytes: u64, node: Option<Node>) -> Result<GuestFrames, OutOfMemory>,
    /// Takes them back; they hold what the guest has left.
    pub release: fn(FrameRange),
    /// Gives the frame of one block of memory on demand; `None`: there is none for this claim.
    pub block: fn(Claim, node: Option<Node>) -> Option<GuestFrames>,
    /// Returns whether parts of a guest's memory may be released: not where free memory is in too many parts.
    pub may_be_parted: fn() -> bool,
    /// Assures so many bytes to a guest, which takes them later, block by block.
    pub assure: fn(bytes: u64) -> Result<(), OutOfMemory>,
    /// So many bytes are assured that were in use until now, or (`false`) need not be any more.
    pub change_assured: fn(bytes: u64, is_more: bool),
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of networks between guests.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// The most bytes of all frames' contents in a page, with [`CAPTURED_HEAD_BYTES`] and the sender's name for each.
pub const MAX_CAPTURED_BYTES: usize = 3500;
/// Bytes of a frame's numbers in a page, at most.
pub const CAPTURED_HEAD_BYTES: usize = 24;

/// A page of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapturePage {
    /// Frames so far.
    pub seen: u64,
    /// Frames so far for which there was no room.
    pub lost: u64,
    /// Frames, in the order in which they were forwarded.
    pub frames: Vec<CapturedFrame>,
}

/// A frame, as its sender has sent it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapturedFrame {
    /// When it was forwarded, in nanoseconds since the host started.
    pub time_ns: u64,
    /// Name of the guest that has sent it.
    pub sender: String,
    /// Its length, in bytes.
    pub bytes: u32,
    /// Its first bytes.
    #[serde(with = "serde_bytes")]
    pub content: Vec<u8>,
}

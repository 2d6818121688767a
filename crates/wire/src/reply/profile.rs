// SPDX-License-Identifier: MIT OR Apache-2.0
//! A profile of the host itself.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// The most words of samples in a page: any values of them fit a frame.
pub const MAX_PROFILE_WORDS: usize = 768;

/// A page of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfilePage {
    /// Build ID of the running image, as the linker wrote it.
    #[serde(with = "serde_bytes")]
    pub build: [u8; 20],
    /// Address of the image's code.
    pub code: u64,
    /// The time between two samples of a CPU.
    pub period_us: u32,
    /// Samples requested so far, of all CPUs together.
    pub asked: u64,
    /// Samples so far for which there was no room.
    pub lost: u64,
    /// Samples, one behind the other, in the words that the crate `profile` describes; at most [`MAX_PROFILE_WORDS`].
    pub samples: Vec<u32>,
}

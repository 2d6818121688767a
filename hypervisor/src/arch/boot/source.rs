// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who started the image.

use units::PhysAddr;

/// Who started this image.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// A boot loader.
    Loader {
        /// The magic number of the protocol that it speaks.
        protocol: u32,
        /// Where what it left lies.
        start_info: PhysAddr,
    },
    /// The image that ran before.
    Predecessor {
        /// Where its hand-over record lies.
        record: PhysAddr,
    },
    /// The image that runs, which may replace itself by this one.
    Judge {
        /// Where its hand-over record lies.
        record: PhysAddr,
        /// Where the way back is.
        page: u64,
    },
}

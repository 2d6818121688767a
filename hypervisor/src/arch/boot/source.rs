// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loader or image that started this image.

use units::PhysAddr;

/// The loader or image that started this image.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// A boot loader.
    Loader {
        /// The magic number of the protocol that it speaks.
        protocol: u32,
        /// The address of what it left.
        start_info: PhysAddr,
    },
    /// The image that ran before.
    Predecessor {
        /// The address of its hand-over record.
        record: PhysAddr,
    },
    /// The image that runs, which may replace itself by this one.
    Judge {
        /// The address of its hand-over record.
        record: PhysAddr,
        /// The address of the page that leads back.
        page: u64,
    },
}

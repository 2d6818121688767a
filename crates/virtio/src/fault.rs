// SPDX-License-Identifier: MIT OR Apache-2.0
//! The errors of a driver.

use core::fmt;

use crate::limits::{CHAIN_SEGMENTS, QUEUE_SIZE_MOST};
use crate::memory::Outside;

/// A violation by a driver. The device needs a reset after any of these (section 2.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A ring, a descriptor table or a buffer is not all memory.
    Outside(Outside),
    /// The available index is further ahead of the used index than the queue has descriptors, or has gone back.
    IndexJumped {
        /// The index that the driver wrote.
        index: u16,
    },
    /// A ring or a chain names a descriptor past the end of its table.
    NoSuchDescriptor {
        /// The descriptor's number.
        number: u16,
    },
    /// A chain has more descriptors than its queue, or than a chain may have: it may be a loop.
    ChainTooLong,
    /// A chain has more than 2^32 - 1 bytes, or a buffer wraps around.
    TooManyBytes,
    /// A buffer for the device to read is behind one for it to write.
    ReadableBehindWritable,
    /// An indirect descriptor without the feature, inside an indirect table, or with a next one.
    WrongIndirect,
    /// An indirect table whose length is no number of descriptors.
    IndirectLength {
        /// The length in bytes.
        bytes: u32,
    },
    /// A queue's size is no power of two, 0, or more than the device offers.
    QueueSize {
        /// The size that the driver wrote.
        size: u16,
    },
    /// A part of a queue is not aligned.
    Misaligned {
        /// Its address.
        address: u64,
    },
    /// A request makes no sense to this device.
    Request(&'static str),
}

impl From<Outside> for Fault {
    fn from(outside: Outside) -> Self {
        Self::Outside(outside)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside(Outside { address, bytes }) => {
                write!(f, "{bytes} bytes at guest address {address:#x} are not guest memory")
            }
            Self::IndexJumped { index } => write!(f, "the available index {index} is beyond the queue's descriptors"),
            Self::NoSuchDescriptor { number } => write!(f, "descriptor {number} is past the end of its table"),
            Self::ChainTooLong => {
                write!(f, "a chain loops, or has more than {CHAIN_SEGMENTS} descriptors or more than its queue")
            }
            Self::TooManyBytes => write!(f, "a chain has more than 4294967295 bytes, or a buffer wraps around"),
            Self::ReadableBehindWritable => write!(f, "a readable buffer is behind a writable one"),
            Self::WrongIndirect => {
                write!(f, "an indirect descriptor is not negotiated, inside an indirect table, or has a next one")
            }
            Self::IndirectLength { bytes } => write!(f, "an indirect table of {bytes} bytes is no table"),
            Self::QueueSize { size } => {
                write!(f, "a queue of {size} descriptors: a power of two up to {QUEUE_SIZE_MOST} is expected")
            }
            Self::Misaligned { address } => write!(f, "a part of a queue at {address:#x} is not aligned"),
            Self::Request(reason) => f.write_str(reason),
        }
    }
}

impl core::error::Error for Fault {}

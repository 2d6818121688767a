// SPDX-License-Identifier: MIT OR Apache-2.0
//! The properties of an export, as its server states them.

use crate::limits::BLOCK_BYTES_MOST;
use crate::problem::Problem;
use crate::wire::flag;

/// The largest payload where the server states none.
const PAYLOAD_BYTES: u32 = 32 << 20;

/// An export, as its server describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Export {
    /// Its size in bytes.
    pub bytes: u64,
    /// Block size in bytes: requests are multiples of it.
    pub block: u32,
    /// The most bytes of a request's data.
    pub payload: u32,
    pub(crate) flags: u16,
}

impl Export {
    /// Returns an export of these sizes.
    ///
    /// # Errors
    /// The [`Problem`] with it.
    pub(crate) fn new(bytes: u64, flags: u16, blocks: Option<(u32, u32)>) -> Result<Self, Problem> {
        if i64::try_from(bytes).is_err() || flags & flag::HAS_FLAGS == 0 {
            return Err(Problem::Size(bytes));
        }
        let (minimum, maximum) = blocks.unwrap_or((1, PAYLOAD_BYTES));
        let is_good = minimum.is_power_of_two() && minimum <= BLOCK_BYTES_MOST && maximum >= BLOCK_BYTES_MOST;
        if !is_good {
            return Err(Problem::BlockSize { minimum, maximum });
        }
        let payload = maximum.min(PAYLOAD_BYTES) & !(BLOCK_BYTES_MOST - 1);
        Ok(Self { bytes, block: minimum, payload, flags })
    }

    /// Returns whether it is as large, and can do as much, as `before` of the same name: its requests fit this one.
    pub(crate) fn replaces(&self, before: &Self) -> bool {
        let is_able = before.flags & !self.flags & (flag::FLUSH | flag::FUA | flag::TRIM | flag::WRITE_ZEROES) == 0;
        is_able && self.bytes >= before.bytes && self.block <= before.block && self.payload >= before.payload
    }

    /// Returns whether it refuses changes.
    pub fn is_read_only(&self) -> bool {
        self.flags & flag::READ_ONLY != 0
    }

    pub(crate) fn can_flush(&self) -> bool {
        self.flags & flag::FLUSH != 0
    }

    pub(crate) fn has_fua(&self) -> bool {
        self.flags & flag::FUA != 0
    }

    pub(crate) fn can_trim(&self) -> bool {
        self.flags & flag::TRIM != 0
    }

    pub(crate) fn can_write_zeroes(&self) -> bool {
        self.flags & flag::WRITE_ZEROES != 0
    }
}

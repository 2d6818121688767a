// SPDX-License-Identifier: MIT OR Apache-2.0
//! The deadline for the confirmation of an update in the record.

use zerocopy::little_endian::U32;

use crate::macros::plain;

/// The longest deadline in seconds: a day.
pub const MAX_DEADLINE_SECONDS: u32 = 86_400;

plain! {
    /// The update is to be confirmed by a client: where none does in time, the new image returns to the one before. A
    /// reader that does not know this would stay for good: it refuses the record.
    pub struct Deadline since 4 {
        /// The time after the commit; from 1 to [`MAX_DEADLINE_SECONDS`].
        pub seconds: U32 as "s",
        /// Zero.
        pub zero: U32 as "zero",
    }
}

impl Deadline {
    /// Returns whether there is such a deadline.
    pub(crate) fn is_possible(&self) -> bool {
        (1..=MAX_DEADLINE_SECONDS).contains(&self.seconds.get())
    }
}

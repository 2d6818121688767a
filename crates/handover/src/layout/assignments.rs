// SPDX-License-Identifier: MIT OR Apache-2.0
//! Assignments of PCI functions in the record.

use zerocopy::little_endian::{U16, U32};

use super::guests::GUEST_NAME_BYTES;
use super::unpadded;
use crate::macros::{flags, plain};

/// The most [`Assignment`]s in a record.
pub const MAX_ASSIGNMENTS: usize = 256;

plain! {
    /// An assignment of a PCI function that differs from the guests' configurations: the operator has changed it since
    /// the host started. It holds the guest's name and not its number, which depends on the bundle.
    pub struct Assignment since 4 {
        /// The guest's name in the bundle.
        pub guest: [u8; GUEST_NAME_BYTES] as "text",
        /// Segment of the function.
        pub segment: U16 as "number",
        /// Requester identifier of the function: bus in bits 8–15, device in 3–7, function in 0–2.
        pub requester: U16 as "number",
        /// Of [`assignment_flag`].
        pub flags: U32 as "flags",
    }
}

flags! {
    /// Bits of [`Assignment::flags`].
    pub mod assignment_flag: u32, since 4 {
        /// The guest is assigned the function. Else it was released, although the guest's configuration names it.
        IS_ASSIGNED = 0,
        /// The guest gets the function even where nothing can reset it.
        WITHOUT_RESET = 1,
    }
}

impl Assignment {
    /// Returns whether it names a guest and an assignment that there can be.
    pub(crate) fn is_possible(&self) -> bool {
        let flags = self.flags.get();
        let is_known = flags & !assignment_flag::ALL == 0;
        is_known && flags != assignment_flag::WITHOUT_RESET && !unpadded(&self.guest).is_empty()
    }
}

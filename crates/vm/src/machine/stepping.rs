// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties of an instruction while it is stepped over.

/// A step over one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The causes that DR6 had.
    pub(super) causes: u64,
    /// The guest steps by itself.
    pub(super) is_guests: bool,
    /// The instruction loads RFLAGS: behind it the trap flag is the guest's.
    pub(super) loads_flags: bool,
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The owners that a frame can have.

/// The owner of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameState {
    /// It is no memory that was ever added.
    Absent = 0,
    /// No owner; any may have it.
    Free = 1,
    /// No owner; it is set aside for guests.
    FreeHuge = 2,
    /// The host.
    Host = 3,
    /// A guest.
    Guest = 4,
    /// No owner ever again: it is damaged.
    Retired = 5,
}

impl FrameState {
    /// Returns the state with this number.
    pub(crate) fn from_number(number: u8) -> Self {
        [Self::Absent, Self::Free, Self::FreeHuge, Self::Host, Self::Guest, Self::Retired]
            .into_iter()
            .find(|state| *state as u8 == number)
            .unwrap_or(Self::Absent)
    }
}

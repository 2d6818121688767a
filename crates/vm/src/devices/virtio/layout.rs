// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a virtio function's registers are in its range (section 4.1.4). Guests have this in their state, so that it
//! stays the same from image to image.

/// The range with all registers.
pub(super) const BAR: u8 = 0;
pub(super) const BAR_BYTES: u32 = 0x4000;

/// A part of the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub first: u32,
    pub bytes: u32,
}

impl Part {
    /// Where an offset in the range is in this part.
    #[inline]
    pub const fn place(self, offset: u64) -> Option<u32> {
        match offset.checked_sub(self.first as u64) {
            Some(place) if place < self.bytes as u64 => Some(place as u32),
            _ => None,
        }
    }
}

pub(super) const COMMON: Part = Part { first: 0, bytes: 64 };
pub(super) const ISR: Part = Part { first: 0x800, bytes: 1 };
pub(super) const DEVICE: Part = Part { first: 0x1000, bytes: 0x1000 };
/// Four bytes for each queue.
pub(super) const NOTIFY: Part = Part { first: 0x2000, bytes: 0x1000 };
pub(super) const NOTIFY_MULTIPLIER: u32 = 4;
pub(super) const MSIX_TABLE: u32 = 0x3000;
pub(super) const MSIX_PENDING: u32 = 0x3800;
/// Queues for which the table has room.
pub(super) const QUEUES_MOST: usize = 127;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who made the tables.

pub(super) const OEM: [u8; 6] = *b"BATON ";
pub(super) const OEM_TABLE: [u8; 8] = *b"BATONVM ";
pub(super) const OEM_REVISION: u32 = 1;

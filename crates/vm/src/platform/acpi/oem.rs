// SPDX-License-Identifier: MIT OR Apache-2.0
//! OEM and creator of the tables.

pub(super) const OEM: [u8; 6] = *b"BATON ";
pub(super) const OEM_TABLE: [u8; 8] = *b"BATONVM ";
pub(super) const OEM_REVISION: u32 = 1;

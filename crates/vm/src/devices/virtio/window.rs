// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access to the registers by way of configuration space (section 4.1.4.9): for firmware that maps no ranges.

use crate::addr::AccessSize;
use crate::devices::device::At;
use crate::devices::pci::Function;

/// Number, link, length, type, range, identifier, padding, offset, length, data.
pub(super) const CAPABILITY_BYTES: usize = 20;
/// The capability's type.
const TYPE: u8 = 5;
/// Offsets in the capability.
const RANGE: u8 = 4;
const OFFSET: u8 = 8;
const LENGTH: u8 = 12;
const DATA: u8 = 16;

/// The capability behind its number and link.
pub(super) const BODY: [u8; CAPABILITY_BYTES - 2] = {
    let mut body = [0; CAPABILITY_BYTES - 2];
    body[0] = CAPABILITY_BYTES as u8;
    body[1] = TYPE;
    body
};
/// The part of that which a driver writes: range, offset, length, data.
pub(super) const WRITABLE: [u8; CAPABILITY_BYTES - 2] = {
    let mut writable = [0; CAPABILITY_BYTES - 2];
    writable[RANGE as usize - 2] = 0xff;
    let mut at = OFFSET as usize - 2;
    while at < writable.len() {
        writable[at] = 0xff;
        at += 1;
    }
    writable
};

/// Where the capability is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    at: u8,
}

impl Window {
    /// The capability that the function has at this register.
    pub fn new(at: usize) -> Self {
        Self { at: at as u8 }
    }

    /// The access that the driver makes by reading or writing this register: one, two or four bytes, aligned, in a
    /// range of the function.
    pub fn access(self, register: u8, function: &Function) -> Option<At> {
        if register != self.at + DATA {
            return None;
        }
        let dword = |field: u8| u32::from_le_bytes([0, 1, 2, 3].map(|byte| function.read(self.at + field + byte)));
        let size = match dword(LENGTH) {
            1 => AccessSize::Byte,
            2 => AccessSize::Word,
            4 => AccessSize::Dword,
            _ => return None,
        };
        let at = At { range: function.read(self.at + RANGE), offset: dword(OFFSET).into(), size };
        at.offset.is_multiple_of(size.bytes() as u64).then_some(at)
    }

    /// The data that the driver has written.
    pub fn data(self, function: &Function) -> u32 {
        u32::from_le_bytes([0, 1, 2, 3].map(|byte| function.read(self.at + DATA + byte)))
    }

    /// Sets the data that the driver is about to read.
    pub fn set_data(self, value: u32, function: &mut Function) {
        let bytes = (self.at + DATA..).zip(value.to_le_bytes());
        bytes.for_each(|(register, byte)| function.change(register, 0xff, byte));
    }
}

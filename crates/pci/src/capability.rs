// SPDX-License-Identifier: MIT OR Apache-2.0
//! A function's capability list (PCI Local Bus 3.0, section 6.7).

use arrayvec::ArrayVec;

use crate::config::Registers;
use crate::problem::{Problem, Problems};

/// Capabilities that fit into the 192 bytes behind the header.
pub const MAX_CAPABILITIES: usize = 48;
const HEADER_BYTES: u8 = 0x40;
/// Configuration space without the extended one.
pub(crate) const CONFIG_BYTES: u16 = 0x100;

/// A capability: what it is, and where its registers begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Its identifier; see the constants.
    pub id: u8,
    /// Its first register.
    pub register: u8,
    /// Bytes 2 and 3 of the capability's register, beside identifier and pointer; their meaning depends on the
    /// capability.
    pub flags: u16,
}

impl Capability {
    /// Power management.
    pub const POWER_MANAGEMENT: u8 = 0x01;
    /// Message signalled interrupts.
    pub const MSI: u8 = 0x05;
    /// The vendor's own; virtio describes its registers in such.
    pub const VENDOR: u8 = 0x09;
    /// PCI Express.
    pub const EXPRESS: u8 = 0x10;
    /// MSI-X.
    pub const MSI_X: u8 = 0x11;

    /// Returns whether its first `bytes` bytes lie within configuration space.
    pub const fn has_bytes(self, bytes: u16) -> bool {
        self.register as u16 + bytes <= CONFIG_BYTES
    }

    /// Returns whether this is the PCI Express capability of a port that leads to one device and no other: a root port,
    /// or a switch's port downwards (PCI Express Base 5.0, section 7.5.3.2).
    pub const fn is_of_a_port_downwards(self) -> bool {
        self.id == Self::EXPRESS && matches!(self.flags >> 4 & 0xf, 4 | 6)
    }
}

/// Follows the list from `pointer` on. It ends at a zero, or with a problem: at a capability met before, or at a
/// pointer into the header.
pub(crate) fn read_list(
    registers: &mut Registers<'_>,
    pointer: u8,
    problems: &mut Problems,
) -> ArrayVec<Capability, MAX_CAPABILITIES> {
    let mut list = ArrayVec::new();
    let mut met = 0u64;
    let mut next = pointer & !3;
    while next != 0 {
        if next < HEADER_BYTES {
            problems.push(Problem::StrayCapability { register: next });
            break;
        }
        let bit = 1 << (next / 4);
        if met & bit != 0 {
            problems.push(Problem::CapabilityLoop { register: next });
            break;
        }
        met |= bit;
        let [id, following, flags @ ..] = registers.read(u16::from(next)).to_le_bytes();
        if id == u8::MAX && following == u8::MAX {
            problems.push(Problem::Vanished);
            break;
        }
        // There is room: 48 places lie behind the header, and none is met twice.
        let _ = list.try_push(Capability { id, register: next, flags: u16::from_le_bytes(flags) });
        next = following & !3;
    }
    list
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The MSI capability (PCI Local Bus 3.0, section 6.8.1): 64-bit addresses, a mask for each vector.

use super::message;
use super::registers::Registers;
use crate::devices::outputs::Outputs;

pub(super) const CAPABILITY: u8 = 0x05;

/// Offsets in the capability.
const CONTROL: usize = 2;
const ADDRESS: usize = 4;
const DATA: usize = 12;
const MASK: usize = 16;
const PENDING: usize = 20;
/// Bytes behind the capability's number and link.
pub(super) const BODY_BYTES: usize = PENDING + 4 - CONTROL;

const ENABLE: u16 = 1 << 0;
const WIDE: u16 = 1 << 7;
const MASKABLE: u16 = 1 << 8;
/// The most vectors, as a power of two.
const MOST: u8 = 5;

/// A function's MSI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Msi {
    /// Offset of the capability in bytes.
    at: usize,
    /// Vectors that the function has, as a power of two.
    vectors: u8,
}

impl Msi {
    /// The registers behind the capability's number and link, and the bits of them that a guest can write.
    pub(super) fn body(vectors_log2: u8) -> Option<([u8; BODY_BYTES], [u8; BODY_BYTES])> {
        let (mut body, mut writable) = ([0; BODY_BYTES], [0; BODY_BYTES]);
        let control = WIDE | MASKABLE | u16::from(vectors_log2) << 1;
        body[..2].copy_from_slice(&control.to_le_bytes());
        writable[..2].copy_from_slice(&(ENABLE | 0b111 << 4).to_le_bytes());
        writable[ADDRESS - CONTROL..][..8].copy_from_slice(&(!0b11u64).to_le_bytes());
        writable[DATA - CONTROL..][..2].fill(0xff);
        writable[MASK - CONTROL..][..4].copy_from_slice(&mask_of(vectors_log2)?.to_le_bytes());
        Some((body, writable))
    }

    /// MSI with its capability at `at`.
    pub(super) const fn new(at: usize, vectors_log2: u8) -> Self {
        Self { at, vectors: vectors_log2 }
    }

    /// Returns where the pending bits are, which the function itself writes, and which of them it has.
    pub(super) fn pending(&self) -> (usize, [u8; 4]) {
        (self.at + PENDING, mask_of(self.vectors).unwrap_or(0).to_le_bytes())
    }

    pub(super) fn is_enabled(&self, registers: &Registers) -> bool {
        self.control(registers) & ENABLE != 0
    }

    /// Interrupts with a vector. Where the guest has allowed fewer, several share one.
    pub(super) fn raise(&self, vector: u16, registers: &mut Registers, outputs: &mut Outputs) {
        let allowed = self.allowed(registers);
        let bit = 1 << (u32::from(vector) & (allowed - 1));
        let pending = registers.u32(self.at + PENDING) | bit;
        registers.set_u32(self.at + PENDING, pending);
        self.send_pending(registers, outputs);
    }

    /// Sends pending messages that may be sent.
    pub(super) fn send_pending(&self, registers: &mut Registers, outputs: &mut Outputs) {
        let pending = registers.u32(self.at + PENDING);
        if pending == 0 || !self.is_enabled(registers) {
            return;
        }
        let address =
            u64::from(registers.u32(self.at + ADDRESS + 4)) << 32 | u64::from(registers.u32(self.at + ADDRESS));
        let allowed = self.allowed(registers);
        let data = registers.u32(self.at + DATA) & 0xffff & !(allowed - 1);
        let (mut ready, mut left) = (pending & !registers.u32(self.at + MASK), pending);
        while ready.trailing_zeros() < allowed {
            let vector = ready.trailing_zeros();
            ready &= ready - 1;
            if message::decode(address, data | vector).is_none_or(|message| outputs.send(message)) {
                left &= !(1 << vector);
            }
        }
        registers.set_u32(self.at + PENDING, left);
    }

    fn control(&self, registers: &Registers) -> u16 {
        registers.u32(self.at).wrapping_shr(16) as u16
    }

    /// Vectors that the guest has allowed.
    pub(super) fn allowed(&self, registers: &Registers) -> u32 {
        1 << (self.control(registers) >> 4 & 0b111).min(u16::from(self.vectors))
    }
}

/// A bit for each vector.
const fn mask_of(vectors_log2: u8) -> Option<u32> {
    if vectors_log2 > MOST { None } else { Some((u64::MAX >> (64 - (1u64 << vectors_log2))) as u32) }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A function's configuration registers as bytes, and the writer of each of their bits.

use zerocopy::little_endian::U64;

use crate::devices::StateError;

/// Bytes of a conventional function's configuration space.
pub const CONFIG_BYTES: usize = 256;
const CONFIG_WORDS: usize = CONFIG_BYTES / size_of::<U64>();

/// The registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Registers {
    now: [u8; CONFIG_BYTES],
    /// Values after a reset.
    reset: [u8; CONFIG_BYTES],
    /// Bits that the guest writes.
    guests: [u8; CONFIG_BYTES],
    /// Bits that the function writes.
    own: [u8; CONFIG_BYTES],
}

impl Registers {
    pub(super) const fn new() -> Self {
        let zero = [0; CONFIG_BYTES];
        Self { now: zero, reset: zero, guests: zero, own: zero }
    }

    /// Sets registers from `offset`, and their values after a reset; bytes past the end are dropped.
    pub(super) fn place(&mut self, offset: usize, bytes: &[u8]) {
        fill(&mut self.now, offset, bytes);
        fill(&mut self.reset, offset, bytes);
    }

    /// Lets the guest write the bits set in `mask`, from `offset`.
    pub(super) fn give_to_guest(&mut self, offset: usize, mask: &[u8]) {
        fill(&mut self.guests, offset, mask);
    }

    /// The function writes the bits set in `mask` itself, from `offset`.
    pub(super) fn keep(&mut self, offset: usize, mask: &[u8]) {
        fill(&mut self.own, offset, mask);
    }

    pub(super) fn all(&self) -> &[u8; CONFIG_BYTES] {
        &self.now
    }

    pub(super) fn u8(&self, offset: usize) -> u8 {
        self.now.get(offset).copied().unwrap_or(0)
    }

    /// Returns four bytes from `offset`, 0 where they reach past the end. Interrupts read several, so it is one load.
    #[inline]
    pub(super) fn u32(&self, offset: usize) -> u32 {
        let rest = self.now.get(offset..).unwrap_or_default();
        rest.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    /// Sets four bytes from `offset`, none where they reach past the end.
    #[inline]
    pub(super) fn set_u32(&mut self, offset: usize, value: u32) {
        let rest = self.now.get_mut(offset..).unwrap_or_default();
        if let Some(bytes) = rest.first_chunk_mut() {
            *bytes = value.to_le_bytes();
        }
    }

    /// The guest writes a byte, as far as it can.
    pub(super) fn write(&mut self, register: u8, value: u8) {
        let index = usize::from(register);
        let mask = self.guests[index];
        self.now[index] = (self.now[index] & !mask) | (value & mask);
    }

    /// The function changes bits that it or the guest writes.
    pub(super) fn change(&mut self, register: u8, mask: u8, value: u8) {
        let index = usize::from(register);
        let mask = mask & (self.guests[index] | self.own[index]);
        self.now[index] = (self.now[index] & !mask) | (value & mask);
    }

    pub(super) fn reset(&mut self) {
        self.now = self.reset;
    }

    /// Checks that saved registers are of this function: only bits differ that it or a guest writes.
    pub(super) fn check(&self, saved: &[u8; CONFIG_BYTES]) -> Result<(), StateError> {
        // By words, and all of them: guests wait meanwhile.
        let [now, saved, guests, own] = [&self.now, saved, &self.guests, &self.own].map(words);
        let differs = |i: usize| (now[i].get() ^ saved[i].get()) & !(guests[i].get() | own[i].get());
        if (0..CONFIG_WORDS).fold(0, |any, i| any | differs(i)) != 0 {
            return Err(StateError { field: "pci.functions.config", reason: "differs where no guest can write" });
        }
        Ok(())
    }

    /// Goes on from saved registers that have been checked.
    pub(super) fn restore(&mut self, saved: &[u8; CONFIG_BYTES]) {
        self.now = *saved;
    }
}

fn words(bytes: &[u8; CONFIG_BYTES]) -> &[U64; CONFIG_WORDS] {
    zerocopy::transmute_ref!(bytes)
}

fn fill(registers: &mut [u8; CONFIG_BYTES], offset: usize, bytes: &[u8]) {
    registers.iter_mut().skip(offset).zip(bytes).for_each(|(register, byte)| *register = *byte);
}

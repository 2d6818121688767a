// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes as a source of decisions.

/// The rest of an input. Past its end everything is zero, so that every input means something.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// Returns whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next `count` bytes, fewer at the end.
    pub fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Bytes with their length, of at most 255, before them.
    pub fn string(&mut self) -> &'a [u8] {
        let count = self.u8();
        self.take(count.into())
    }

    /// The next bytes as an array.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let taken = self.take(N);
        let mut array = [0; N];
        array[..taken.len()].copy_from_slice(taken);
        array
    }

    /// A byte.
    pub fn u8(&mut self) -> u8 {
        u8::from_le_bytes(self.array())
    }

    /// Two bytes.
    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    /// Four bytes.
    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// A bit of a byte.
    pub fn bool(&mut self) -> bool {
        self.u8() & 1 != 0
    }

    /// A number that is small, near a power of two, or anything.
    pub fn number(&mut self) -> u64 {
        match self.u8() {
            0..=127 => self.u8().into(),
            shift @ 128..=191 => (1u64 << (shift & 63)).wrapping_add(self.u8() as i8 as u64),
            _ => self.u64(),
        }
    }

    /// One of `choices`.
    pub fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.u8()) % choices.len()]
    }
}

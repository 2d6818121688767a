// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory from which bytes are forwarded.

use ::virtio::Outside;

/// Which side of a copy is not memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// The sender's.
    Sender(Outside),
    /// The receiver's.
    Receiver(Outside),
}

/// The sender's memory, and the way from there to the receiver's. Both may be written meanwhile; each byte is read
/// once.
pub trait Source {
    /// Copies out of the sender's memory.
    ///
    /// # Errors
    /// [`Outside`] if the range is not all memory.
    fn read(&self, from: u64, into: &mut [u8]) -> Result<(), Outside>;

    /// Copies from the sender's memory to the receiver's.
    ///
    /// # Errors
    /// [`Unreachable`] if either range is not all memory; then nothing is copied.
    fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<(), Unreachable>;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The epitaph: a record that a host which ends leaves in memory for the next one.
//!
//! A warm restart keeps memory; a reset through the firmware mostly does, and where it does not, the checksum shows it.
//! The bytes found there are untrusted input: [`Epitaph::read`] checks every field, and no text shown of it moves a
//! cursor.

mod format;
mod lines;
mod read;
mod write;

pub use format::{BACKTRACE_ADDRESSES, EPITAPH_BYTES, REGISTERS, Registers, VERSION};
pub use read::{Damage, Epitaph};
pub use write::{Account, TooSmall, write};

#[cfg(test)]
mod tests;

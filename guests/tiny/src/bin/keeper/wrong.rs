// SPDX-License-Identifier: MIT OR Apache-2.0
//! A difference from the expected state.

use core::fmt;

/// A register or a place in memory with a value that is not its own.
#[derive(Clone, Copy)]
pub struct Wrong {
    /// The kind of register, or memory.
    pub what: &'static str,
    /// Its number or address.
    pub item: u64,
    /// Value found.
    pub found: u64,
    /// Value expected.
    pub wanted: u64,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, item, found, wanted } = self;
        write!(f, "{what} {item:#x} holds {found:#x}, not {wanted:#x}")
    }
}

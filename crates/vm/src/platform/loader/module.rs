// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files for a kernel.

/// Modules that one kernel can be given.
pub const MAX_MODULES: usize = 32;

/// A file given to the kernel beside itself: for Linux (part of) the initial RAM disk.
#[derive(Clone, Copy, Debug)]
pub struct Module<'a> {
    /// The file.
    pub bytes: &'a [u8],
    /// Its own command line; Linux has no place for it.
    pub command_line: &'a [u8],
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A piece of the packed data: a byte, or a match.

/// A literal (of length 1, without a distance), or a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub length: u16,
    pub distance: u16,
    pub literal: u8,
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! An instruction that is to be emulated.

use iced_x86::Instruction;

use super::kind::Kind;
use crate::addr::AccessSize;

/// An instruction that accesses memory, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub(super) instruction: Instruction,
    pub(super) kind: Kind,
    pub(super) size: AccessSize,
}

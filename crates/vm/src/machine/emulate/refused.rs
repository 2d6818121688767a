// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reasons not to emulate an instruction.

use iced_x86::Code;

use crate::vcpu::Exception;

/// The reason why an instruction was not emulated; the guest's state is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The guest gets this exception.
    Exception(Exception),
    /// An instruction that is not emulated.
    Unsupported(Code),
    /// The instruction does not access the address that the CPU reported: the guest has changed its code or its page
    /// tables since. It executes the instruction again.
    Changed,
}

impl From<Exception> for Refused {
    fn from(exception: Exception) -> Self {
        Self::Exception(exception)
    }
}

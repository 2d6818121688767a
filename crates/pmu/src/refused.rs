// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an access gets that the CPU would refuse.

/// #GP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

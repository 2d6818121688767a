// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answer to an access that the CPU would refuse.

/// #GP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reasons why something was not saved.

/// A tail has no room for the data to be put there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

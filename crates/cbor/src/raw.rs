// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values that are passed on as they are encoded.

use alloc::vec::Vec;

use serde::ser::{Serialize, Serializer};

/// The name of the variant whose content stands for the whole value.
pub(super) const ENCODED: &str = "encoded";

/// The bytes of a value of whatever type: what a variant of the name `encoded` has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raw(pub(super) Vec<u8>);

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

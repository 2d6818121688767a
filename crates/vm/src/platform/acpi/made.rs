// SPDX-License-Identifier: MIT OR Apache-2.0
//! AML that has been made.

use alloc::vec::Vec;

use acpi_tables::{Aml, AmlSink};

/// AML that has been made.
pub(super) struct Made(pub Vec<u8>);

impl Aml for Made {
    fn to_aml_bytes(&self, sink: &mut dyn AmlSink) {
        sink.vec(&self.0);
    }
}

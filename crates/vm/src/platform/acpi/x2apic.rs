// SPDX-License-Identifier: MIT OR Apache-2.0
//! MADT entry for a CPU with an identifier of more than eight bits.

use acpi_tables::{Aml, AmlSink};
use zerocopy::byteorder::little_endian::U32;
use zerocopy::{Immutable, IntoBytes};

const ENABLED: u32 = 1;

/// Processor Local x2APIC structure (ACPI 6.5, section 5.2.12.12).
#[derive(Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct ProcessorLocalX2Apic {
    kind: u8,
    length: u8,
    reserved: [u8; 2],
    x2apic_id: U32,
    flags: U32,
    processor_uid: U32,
}

impl ProcessorLocalX2Apic {
    pub fn new(id: u32) -> Self {
        Self {
            kind: 9,
            length: 16,
            reserved: [0; 2],
            x2apic_id: id.into(),
            flags: ENABLED.into(),
            processor_uid: id.into(),
        }
    }
}

impl Aml for ProcessorLocalX2Apic {
    fn to_aml_bytes(&self, sink: &mut dyn AmlSink) {
        sink.vec(self.as_bytes());
    }
}

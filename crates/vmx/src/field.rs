// SPDX-License-Identifier: MIT OR Apache-2.0
//! The VMCS's fields (appendix B), a closed enum for each width.

#[macro_use]
mod define;
mod bits_16;
mod bits_32;
mod bits_64;
mod natural;

pub use bits_16::Field16;
pub use bits_32::Field32;
pub use bits_64::Field64;
pub use define::Field;
pub use natural::FieldNatural;

/// A VMCS: VMREAD and VMWRITE on the machine, plain data in tests. The two instructions are the same for all widths: a
/// narrower field is read with zeros above it, and what is written above it is ignored.
///
/// Only fields that exist are passed ([`Field::exists`]): the instructions fail for all others.
pub trait Vmcs {
    /// Reads a field.
    fn vmread(&self, field: impl Field) -> u64;
    /// Writes a field.
    fn vmwrite(&mut self, field: impl Field, value: u64);

    /// Reads a field of 16 bits.
    #[inline]
    fn read_16(&self, field: Field16) -> u16 {
        self.vmread(field) as u16
    }
    /// Reads a field of 32 bits.
    #[inline]
    fn read_32(&self, field: Field32) -> u32 {
        self.vmread(field) as u32
    }
    /// Reads a field of 64 bits.
    #[inline]
    fn read_64(&self, field: Field64) -> u64 {
        self.vmread(field)
    }
    /// Reads a field of natural width: 64 bits on a 64-bit CPU.
    #[inline]
    fn read_natural(&self, field: FieldNatural) -> u64 {
        self.vmread(field)
    }
    /// Writes a field of 16 bits.
    #[inline]
    fn write_16(&mut self, field: Field16, value: u16) {
        self.vmwrite(field, value.into());
    }
    /// Writes a field of 32 bits.
    #[inline]
    fn write_32(&mut self, field: Field32, value: u32) {
        self.vmwrite(field, value.into());
    }
    /// Writes a field of 64 bits.
    #[inline]
    fn write_64(&mut self, field: Field64, value: u64) {
        self.vmwrite(field, value);
    }
    /// Writes a field of natural width.
    #[inline]
    fn write_natural(&mut self, field: FieldNatural, value: u64) {
        self.vmwrite(field, value);
    }
}

/// A field with the value that it holds.
pub trait Access: Field {
    /// An integer of its width.
    type Value;

    /// Reads it.
    fn read(self, vmcs: &impl Vmcs) -> Self::Value;

    /// Writes it.
    fn write(self, vmcs: &mut impl Vmcs, value: Self::Value);
}

macro_rules! access {
    ($($field:ty: $value:ty = $read:ident $write:ident,)*) => {
        $(impl Access for $field {
            type Value = $value;

            #[inline]
            fn read(self, vmcs: &impl Vmcs) -> $value {
                vmcs.$read(self)
            }

            #[inline]
            fn write(self, vmcs: &mut impl Vmcs, value: $value) {
                vmcs.$write(self, value);
            }
        })*
    };
}

access! {
    Field16: u16 = read_16 write_16,
    Field32: u32 = read_32 write_32,
    Field64: u64 = read_64 write_64,
    FieldNatural: u64 = read_natural write_natural,
}

#[cfg(test)]
#[path = "field_tests.rs"]
mod tests;

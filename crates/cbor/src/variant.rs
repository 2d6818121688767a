// SPDX-License-Identifier: MIT OR Apache-2.0
//! Variants: known ones, and those that a newer writer has added.

use serde::de::value::U32Deserializer;
use serde::de::{DeserializeSeed, EnumAccess, IntoDeserializer as _, VariantAccess, Visitor};

use super::reader::{Error, Reader};

/// The name of the variant that stands for all that a reader does not know.
const UNKNOWN: &str = "unknown";

/// A variant: its number, and its content.
pub(super) struct Variant<'r, 'b> {
    number: u32,
    reader: &'r mut Reader<'b>,
    /// Elements of the list behind the number; none where there is no list.
    left: u64,
}

impl<'r, 'b> Variant<'r, 'b> {
    /// Reads its number, and what stands in front of its content.
    pub fn read(reader: &'r mut Reader<'b>, variants: &[&str]) -> Result<Self, Error> {
        let length = if reader.is_at_array() { reader.array()? } else { 1 };
        let mut left = length.checked_sub(1).ok_or(Error::Malformed)?;
        let mut number = reader.u32()?;
        if number as usize >= variants.len() {
            let unknown = variants.iter().position(|name| *name == UNKNOWN).ok_or(Error::Unknown)?;
            reader.skip(left)?;
            (number, left) = (unknown as u32, 0);
        }
        Ok(Self { number, reader, left })
    }

    /// Passes over what is left behind the content.
    fn end(self) -> Result<(), Error> {
        self.reader.skip(self.left)
    }

    /// Its content comes next.
    fn begin(&mut self) -> Result<&mut Reader<'b>, Error> {
        self.left = self.left.checked_sub(1).ok_or(Error::Malformed)?;
        Ok(self.reader)
    }
}

impl<'b> EnumAccess<'b> for Variant<'_, 'b> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'b>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        let number: U32Deserializer<Error> = self.number.into_deserializer();
        Ok((seed.deserialize(number)?, self))
    }
}

impl<'b> VariantAccess<'b> for Variant<'_, 'b> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        self.end()
    }

    fn newtype_variant_seed<T: DeserializeSeed<'b>>(mut self, seed: T) -> Result<T::Value, Error> {
        let value = seed.deserialize(self.begin()?)?;
        self.end()?;
        Ok(value)
    }

    fn tuple_variant<V: Visitor<'b>>(mut self, _: usize, visitor: V) -> Result<V::Value, Error> {
        let value = self.begin()?.list(visitor)?;
        self.end()?;
        Ok(value)
    }

    fn struct_variant<V: Visitor<'b>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, Error> {
        self.tuple_variant(0, visitor)
    }
}

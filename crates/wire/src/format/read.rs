// SPDX-License-Identifier: MIT OR Apache-2.0
//! From bytes to values.

use core::fmt::{self, Display};

use minicbor::data::Type;
use minicbor::{Decoder, decode};
use serde::de::value::U32Deserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, SeqAccess, VariantAccess,
    Visitor,
};

/// The name of the variant that stands for all that a reader does not know.
const UNKNOWN: &str = "unknown";

/// The reason why bytes are no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// They are not encoded so.
    Malformed,
    /// They hold a variant that this side does not know: the writer is newer.
    Unknown,
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "no message is encoded so",
            Self::Unknown => "the message is of a newer release",
        })
    }
}

impl core::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: Display>(_: T) -> Self {
        Self::Malformed
    }
}

impl From<decode::Error> for Error {
    fn from(_: decode::Error) -> Self {
        Self::Malformed
    }
}

/// Reads values from bytes of untrusted origin.
pub struct Reader<'b>(Decoder<'b>);

impl<'b> Reader<'b> {
    /// A reader of these bytes.
    pub fn new(bytes: &'b [u8]) -> Self {
        Self(Decoder::new(bytes))
    }

    /// Reads the head of a list; returns its length.
    ///
    /// # Errors
    /// There is no list, or one of unknown length.
    #[inline(never)]
    pub fn array(&mut self) -> Result<u64, Error> {
        self.0.array()?.ok_or(Error::Malformed)
    }

    /// Reads a number.
    ///
    /// # Errors
    /// There is none, or a larger one.
    pub fn u32(&mut self) -> Result<u32, Error> {
        Ok(self.0.u32()?)
    }

    /// Returns whether a list is next.
    pub fn is_at_array(&self) -> bool {
        self.0.datatype().is_ok_and(|kind| kind == Type::Array)
    }

    /// Returns whether all bytes have been read.
    pub fn is_at_end(&self) -> bool {
        self.left_bytes() == 0
    }

    fn left_bytes(&self) -> usize {
        self.0.input().len().saturating_sub(self.0.position())
    }

    /// Reads a list, and passes over the fields that the visitor does not know.
    fn list<V: Visitor<'b>>(&mut self, visitor: V) -> Result<V::Value, Error> {
        let mut elements = Elements { left: self.array()?, reader: self };
        let value = visitor.visit_seq(&mut elements)?;
        let left = elements.left;
        self.skip(left)?;
        Ok(value)
    }

    /// Passes over so many values.
    // Once in the image, as the other parts that do not depend on a type.
    #[inline(never)]
    fn skip(&mut self, values: u64) -> Result<(), Error> {
        (0..values).try_for_each(|_| self.0.skip())?;
        Ok(())
    }
}

/// Reads a value that takes all of these bytes.
///
/// # Errors
/// They are no such value.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    let mut reader = Reader::new(bytes);
    let value = T::deserialize(&mut reader)?;
    if reader.is_at_end() { Ok(value) } else { Err(Error::Malformed) }
}

/// The elements of a list.
struct Elements<'r, 'b> {
    reader: &'r mut Reader<'b>,
    left: u64,
}

impl<'b> SeqAccess<'b> for &mut Elements<'_, 'b> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'b>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(&mut *self.reader).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        // The length is anything; each element has a byte at least.
        usize::try_from(self.left).ok().map(|left| left.min(self.reader.left_bytes()))
    }
}

/// A variant: its number, and its content.
struct Variant<'r, 'b> {
    number: u32,
    reader: &'r mut Reader<'b>,
    /// Elements of the list behind the number; none where there is no list.
    left: u64,
}

impl<'r, 'b> Variant<'r, 'b> {
    fn read(reader: &'r mut Reader<'b>, variants: &[&str]) -> Result<Self, Error> {
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

type Names = &'static [&'static str];

/// Methods that read a number, which the visitor checks.
macro_rules! numbers {
    ($($method:ident $visit:ident $read:ident),*) => {$(
        fn $method<V: Visitor<'b>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit(self.0.$read()?)
        }
    )*};
}

impl<'b> Deserializer<'b> for &mut Reader<'b> {
    type Error = Error;

    numbers!(
        deserialize_bool visit_bool bool,
        deserialize_i8 visit_i64 i64,
        deserialize_i16 visit_i64 i64,
        deserialize_i32 visit_i64 i64,
        deserialize_i64 visit_i64 i64,
        deserialize_u8 visit_u64 u64,
        deserialize_u16 visit_u64 u64,
        deserialize_u32 visit_u64 u64,
        deserialize_u64 visit_u64 u64,
        deserialize_identifier visit_u64 u64,
        deserialize_str visit_borrowed_str str,
        deserialize_string visit_borrowed_str str,
        deserialize_bytes visit_borrowed_bytes bytes,
        deserialize_byte_buf visit_borrowed_bytes bytes
    );

    fn deserialize_any<V: Visitor<'b>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::Malformed)
    }

    fn deserialize_f32<V: Visitor<'b>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::Malformed)
    }

    fn deserialize_f64<V: Visitor<'b>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::Malformed)
    }

    fn deserialize_map<V: Visitor<'b>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::Malformed)
    }

    fn deserialize_char<V: Visitor<'b>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_char(char::from_u32(self.u32()?).ok_or(Error::Malformed)?)
    }

    fn deserialize_option<V: Visitor<'b>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.datatype()? != Type::Null {
            return visitor.visit_some(self);
        }
        self.0.null()?;
        visitor.visit_none()
    }

    fn deserialize_unit<V: Visitor<'b>>(self, visitor: V) -> Result<V::Value, Error> {
        self.0.null()?;
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'b>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'b>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'b>>(self, visitor: V) -> Result<V::Value, Error> {
        self.list(visitor)
    }

    fn deserialize_tuple<V: Visitor<'b>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.list(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'b>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.list(visitor)
    }

    fn deserialize_struct<V: Visitor<'b>>(self, _: &'static str, _: Names, visitor: V) -> Result<V::Value, Error> {
        self.list(visitor)
    }

    fn deserialize_enum<V: Visitor<'b>>(self, _: &'static str, names: Names, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_enum(Variant::read(self, names)?)
    }

    fn deserialize_ignored_any<V: Visitor<'b>>(self, visitor: V) -> Result<V::Value, Error> {
        self.0.skip()?;
        visitor.visit_unit()
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

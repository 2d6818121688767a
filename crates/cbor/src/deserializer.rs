// SPDX-License-Identifier: MIT OR Apache-2.0
//! From bytes to values.

use minicbor::data::Type;
use serde::de::{Deserializer, Visitor};

use super::reader::{Error, Reader};
use super::variant::Variant;

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

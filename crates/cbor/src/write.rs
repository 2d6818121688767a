// SPDX-License-Identifier: MIT OR Apache-2.0
//! From values to bytes.

use alloc::vec::Vec;
use core::fmt::{self, Display};

use minicbor::Encoder;
use minicbor::encode::{self, Write};
use serde::ser::{self, Serialize};

use super::raw::ENCODED;

/// There is no room for the value, or it is of a kind that has no encoding here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no room for the value")
    }
}

impl core::error::Error for Full {}

impl ser::Error for Full {
    fn custom<T: Display>(_: T) -> Self {
        Self
    }
}

impl From<encode::Error<Full>> for Full {
    fn from(_: encode::Error<Full>) -> Self {
        Self
    }
}

/// A place for bytes.
pub trait Sink {
    /// Takes all bytes, or fails.
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full>;
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

/// Appends a value.
///
/// # Errors
/// It is of a kind that has no encoding here.
pub fn append(value: &impl Serialize, to: &mut Vec<u8>) -> Result<(), Full> {
    value.serialize(&mut Writer::new(to))
}

/// One type for all sinks, so that each type is encoded by one piece of code.
struct Out<'s>(&'s mut dyn Sink);

impl Write for Out<'_> {
    type Error = Full;

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.0.put(bytes)
    }
}

/// Writes values to a sink.
pub struct Writer<'s> {
    encoder: Encoder<Out<'s>>,
    /// The next bytes are an encoded value.
    is_raw: bool,
}

impl<'s> Writer<'s> {
    /// A writer to this sink.
    pub fn new(sink: &'s mut dyn Sink) -> Self {
        Self { encoder: Encoder::new(Out(sink)), is_raw: false }
    }

    fn array(&mut self, length: usize) -> Result<&mut Self, Full> {
        self.encoder.array(length as u64)?;
        Ok(self)
    }

    fn variant(&mut self, number: u32) -> Result<&mut Self, Full> {
        self.encoder.array(2)?.u32(number)?;
        Ok(self)
    }
}

type Done = Result<(), Full>;

/// Methods for numbers that are written as wider ones: CBOR takes the shortest form.
macro_rules! widened {
    ($($method:ident $number:ident $wider:ident),*) => {$(
        fn $method(self, value: $number) -> Done {
            self.$wider(value.into())
        }
    )*};
}

impl ser::Serializer for &mut Writer<'_> {
    type Ok = ();
    type Error = Full;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = ser::Impossible<(), Full>;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    fn serialize_bool(self, value: bool) -> Done {
        Ok(self.encoder.bool(value).map(drop)?)
    }

    fn serialize_i64(self, value: i64) -> Done {
        Ok(self.encoder.i64(value).map(drop)?)
    }

    widened!(
        serialize_i8 i8 serialize_i64,
        serialize_i16 i16 serialize_i64,
        serialize_i32 i32 serialize_i64,
        serialize_u8 u8 serialize_u64,
        serialize_u16 u16 serialize_u64,
        serialize_u32 u32 serialize_u64
    );

    fn serialize_u64(self, value: u64) -> Done {
        Ok(self.encoder.u64(value).map(drop)?)
    }

    fn serialize_f32(self, _: f32) -> Done {
        Err(Full)
    }

    fn serialize_f64(self, _: f64) -> Done {
        Err(Full)
    }

    fn serialize_char(self, value: char) -> Done {
        self.serialize_u32(value.into())
    }

    fn serialize_str(self, value: &str) -> Done {
        Ok(self.encoder.str(value).map(drop)?)
    }

    fn serialize_bytes(self, value: &[u8]) -> Done {
        if core::mem::take(&mut self.is_raw) {
            return self.encoder.writer_mut().write_all(value);
        }
        Ok(self.encoder.bytes(value).map(drop)?)
    }

    fn serialize_none(self) -> Done {
        Ok(self.encoder.null().map(drop)?)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Done {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Done {
        self.serialize_none()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Done {
        self.serialize_none()
    }

    fn serialize_unit_variant(self, _: &'static str, number: u32, _: &'static str) -> Done {
        self.serialize_u32(number)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Done {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        number: u32,
        name: &'static str,
        value: &T,
    ) -> Done {
        self.is_raw = name == ENCODED;
        if self.is_raw {
            return value.serialize(self);
        }
        value.serialize(self.variant(number)?)
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Self, Full> {
        self.array(length.ok_or(Full)?)
    }

    fn serialize_tuple(self, length: usize) -> Result<Self, Full> {
        self.array(length)
    }

    fn serialize_tuple_struct(self, _: &'static str, length: usize) -> Result<Self, Full> {
        self.array(length)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        number: u32,
        _: &'static str,
        length: usize,
    ) -> Result<Self, Full> {
        self.variant(number)?.array(length)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Full> {
        Err(Full)
    }

    fn serialize_struct(self, _: &'static str, length: usize) -> Result<Self, Full> {
        self.array(length)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        number: u32,
        _: &'static str,
        length: usize,
    ) -> Result<Self, Full> {
        self.variant(number)?.array(length)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// Implements a trait of serde's for parts that follow each other. The name of one that has a name is not written.
macro_rules! parts {
    ($($trait:ident $method:ident $($name:ty)?),*) => {$(
        impl ser::$trait for &mut Writer<'_> {
            type Ok = ();
            type Error = Full;

            fn $method<T: Serialize + ?Sized>(&mut self, $(_: $name,)? value: &T) -> Done {
                value.serialize(&mut **self)
            }

            fn end(self) -> Done {
                Ok(())
            }
        }
    )*};
}

parts!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field,
    SerializeStruct serialize_field &'static str,
    SerializeStructVariant serialize_field &'static str
);

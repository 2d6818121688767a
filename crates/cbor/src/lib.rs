// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of serde's types as CBOR (RFC 8949) in which a field's place in its list is its number: the encoding of
//! messages and of manifests.
//!
//! | Rust | CBOR |
//! |---|---|
//! | struct, tuple, list | array of its fields, in their order |
//! | variant without fields | its number |
//! | variant with fields | array of its number and its content |
//! | `Option` | null, or the content |
//! | text, bytes, numbers, truth values | as in CBOR |
//!
//! So types grow at their end. A reader passes over fields that it does not know, and gives those that it misses their
//! default (`#[serde(default)]`). A variant that it does not know is [`Error::Unknown`], or the variant `Unknown` of
//! types that have one. A variant `encoded` is written as the value whose bytes ([`Raw`]) it has.
#![no_std]
#![warn(missing_docs)]

extern crate alloc;

mod deserializer;
mod raw;
mod reader;
mod variant;
mod write;

pub use raw::Raw;
pub use reader::{Error, Reader, read};
pub use write::{Full, Sink, Writer, append};

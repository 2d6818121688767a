// SPDX-License-Identifier: MIT OR Apache-2.0
//! Structures and numbers that describe themselves, by the macros of [`crate::macros`].

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::version::VERSION;

/// A piece of plain bytes.
pub trait Plain: Copy + FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned {}
impl<T: Copy + FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned> Plain for T {}

/// A structure that is handed over, with its description.
pub trait Described: Plain {
    /// Its name.
    const NAME: &'static str;
    /// The first version that has it.
    const SINCE: u32;
    /// Its fields, in order. New ones come at the end, and zero is what they mean where they are missing.
    const FIELDS: &'static [Field];

    /// Its bytes in a version: the fields that this one has.
    #[inline]
    fn bytes_in(version: u32) -> usize {
        if version >= VERSION {
            return size_of::<Self>();
        }
        let there = Self::FIELDS.iter().filter(|field| field.since <= version);
        there.map(|field| field.offset + field.bytes).max().unwrap_or(0)
    }

    /// Returns the structure at the start of `bytes`, which a writer of this version wrote; fields that it did not have
    /// are zero.
    fn read_in(version: u32, bytes: &[u8]) -> Option<Self> {
        let there = bytes.get(..Self::bytes_in(version))?;
        let mut whole = Self::new_zeroed();
        whole.as_mut_bytes().get_mut(..there.len())?.copy_from_slice(there);
        Some(whole)
    }
}

/// One field of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Its type. Numbers are little endian.
    pub type_name: &'static str,
    /// Its unit, or its kind where it has none.
    pub unit: &'static str,
    /// The first version that has it.
    pub since: u32,
    /// Bytes before it.
    pub offset: usize,
    /// Its bytes.
    pub bytes: usize,
}

/// A field stands where it stood in every version before: newer ones come behind older ones.
pub(crate) const fn assert_grows_at_its_end(fields: &[Field]) {
    let mut at = 1;
    while at < fields.len() {
        assert!(fields[at - 1].since <= fields[at].since, "a new field comes at the end");
        at += 1;
    }
}

/// An enumeration whose numbers are handed over, or a field's flags.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    /// Its name.
    pub name: &'static str,
    /// The first version that has it.
    pub since: u32,
    /// Names, numbers, and the first version that has each.
    pub all: &'static [(&'static str, u32, u32)],
}

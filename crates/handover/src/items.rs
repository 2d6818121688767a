// SPDX-License-Identifier: MIT OR Apache-2.0
//! A section's structures as a reader sees them, whichever version wrote them.

use core::fmt;
use core::marker::PhantomData;

use crate::described::Described;

/// Any number of structures, one behind the other.
pub struct Items<'a, T> {
    bytes: &'a [u8],
    version: u32,
    holds: PhantomData<T>,
}

impl<'a, T: Described> Items<'a, T> {
    /// None.
    pub const EMPTY: Self = Self { bytes: &[], version: crate::VERSION, holds: PhantomData };

    /// The structures in a section's payload; `None` if it is not a whole number of them.
    pub(crate) fn new(bytes: &'a [u8], version: u32) -> Option<Self> {
        let each = T::bytes_in(version);
        (each > 0 && bytes.len().is_multiple_of(each)).then_some(Self { bytes, version, holds: PhantomData })
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.bytes.len() / T::bytes_in(self.version).max(1)
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = T> + Clone + use<'a, T> {
        let version = self.version;
        self.bytes.chunks_exact(T::bytes_in(version).max(1)).filter_map(move |each| T::read_in(version, each))
    }

    /// The one at this place.
    pub fn get(&self, index: usize) -> Option<T> {
        let each = T::bytes_in(self.version);
        T::read_in(self.version, self.bytes.get(index.checked_mul(each)?..)?)
    }
}

impl<T> Clone for Items<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Items<'_, T> {}

impl<T: Described + fmt::Debug> fmt::Debug for Items<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's statistics of its memory (section 5.5.6.3).

/// Bytes of one: its tag, and its value, packed.
const BYTES: usize = 10;

/// The statistics that a guest has stated last, in bytes but for `major_faults`; `None`: it does not state it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Page faults that needed I/O.
    pub major_faults: Option<u64>,
    /// Memory that is not used at all.
    pub free_bytes: Option<u64>,
    /// All memory.
    pub total_bytes: Option<u64>,
    /// Memory that new programs can get without swapping.
    pub available_bytes: Option<u64>,
    /// Caches of files.
    pub cache_bytes: Option<u64>,
}

impl Statistics {
    /// Bytes that are read of a chain: as many as the standard's statistics, twice.
    pub(super) const MOST_BYTES: usize = 32 * BYTES;

    /// The statistics in these bytes. Unknown tags are passed over.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut this = Self::default();
        for [tag_low, tag_high, value @ ..] in bytes.as_chunks::<BYTES>().0 {
            let value = Some(u64::from_le_bytes(*value));
            match u16::from_le_bytes([*tag_low, *tag_high]) {
                2 => this.major_faults = value,
                4 => this.free_bytes = value,
                5 => this.total_bytes = value,
                6 => this.available_bytes = value,
                7 => this.cache_bytes = value,
                _ => {}
            }
        }
        this
    }
}

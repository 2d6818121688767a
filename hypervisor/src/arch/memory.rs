// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's memory: its frames and its page tables.
//!
//! | module | content |
//! |---|---|
//! | [`frames`] | all frames by owner, and the owners' views of them |
//! | [`table_frames`], [`tables`] | frames as page tables; the host's own |
//! | [`protection`] | protection that each CPU enables, and TLB flushes |
//! | [`shown`] | memory that is used only where the host's tables show it |

mod frames;
mod protection;
mod shown;
mod table_frames;
mod tables;

pub use self::frames::{
    FRAMES, OwnedFrames, adopted_words, bytes_of, clear_piece, open_ledger, permanent_frames, permanent_words,
    records_in, release,
};
pub use protection::{flush_translations, largest_page, protect_this_cpu};
pub use shown::{module_bytes, write_low};
pub use table_frames::TableFrames;
pub use tables::{DevicePage, MemoryError, enter, host_root, map_device, map_new, with_host_tables};

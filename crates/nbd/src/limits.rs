// SPDX-License-Identifier: MIT OR Apache-2.0
//! The limits of a client.

/// Requests in flight at most.
pub const REQUESTS: usize = 128;
/// Bytes of an export's name at most. The protocol allows 4,096.
pub const NAME_BYTES: usize = 128;
/// Size of the pieces in which data is copied, in bytes.
pub const PIECE_BYTES: usize = 1024;
/// The largest block size that a server may require.
pub const BLOCK_BYTES_MOST: u32 = 4096;
/// Bytes of acknowledged writes that are kept until a flush is answered.
pub const JOURNAL_BYTES: usize = 256 << 10;
/// Such writes at most.
pub const JOURNAL_WRITES: usize = 128;
/// Size of the parts in which a larger request is sent, one after the other, in bytes.
pub(crate) const PART_BYTES: u32 = 256 << 10;
/// The same where the journal keeps it.
pub(crate) const JOURNAL_PART_BYTES: u32 = 64 << 10;
/// Bytes that one turn sends and receives, and the steps in which it does.
pub(crate) const TURN_BYTES: usize = 256 << 10;
pub(crate) const TURN_STEPS: u32 = 1024;
/// Bytes of a reply to an option, and such replies.
pub(crate) const OPTION_BYTES: u32 = 4096;
pub(crate) const OPTION_REPLIES: u32 = 32;
/// The least time that a server has to accept a connection and to negotiate.
pub(crate) const HANDSHAKE_NS: u64 = 5_000_000_000;
/// The pause before the client connects again: doubled from the one to the other while no request is answered.
pub(crate) const BACKOFF_NS: u64 = 20_000_000;
pub(crate) const BACKOFF_MOST_NS: u64 = 1_000_000_000;

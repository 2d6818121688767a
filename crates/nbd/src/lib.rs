// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client of the network block device protocol (NBD) as a state machine over any stream of bytes.
//!
//! ```text
//! submit ──► slots ──► send ──► Stream ──► server
//!              ▲        │ data of writes: Driver::read, or the journal
//! complete ◄───┴──── receive ◄── Stream
//!                       │ data of reads: Driver::write
//! ```
//!
//! - **Protocol** (`doc/proto.md` of the NBD project): fixed newstyle negotiation, `NBD_OPT_GO`, simple replies.
//!   Structured replies, TLS and metadata are not asked for.
//! - **Data stays where it is.** A write is read from its driver while it is sent, a read is written there while it
//!   arrives: a piece of [`PIECE_BYTES`] at a time.
//! - **The server is untrusted.** A reply that fits no request, a size that shrinks, a server that never answers: each
//!   has a [`Problem`], which ends the connection.
//! - **A connection that ends** loses nothing: the client connects again, and repeats what is unanswered. A request
//!   fails when its time-out is over.
//! - **Durability.** By default each change carries `NBD_CMD_FLAG_FUA`, or is followed by a flush where the server
//!   knows no FUA: what is acknowledged is stable. With a write-back cache acknowledged writes are kept in a
//!   [journal](JOURNAL_BYTES) until a flush is answered, and written again on the next connection.
//! - **Bounds**: [`Client::turn`] moves a bounded number of bytes, and allocates nothing.
#![no_std]
#![warn(missing_docs)]

#[cfg(any(test, feature = "testing"))]
extern crate std;

extern crate alloc;

mod client;
mod export;
mod figures;
mod handshake;
mod journal;
mod limits;
mod problem;
mod request;
mod saved;
mod stream;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod wire;

pub use client::{Client, Config, News};
pub use export::Export;
pub use figures::{Counts, Figures, Transfers};
pub use limits::{BLOCK_BYTES_MOST, JOURNAL_BYTES, JOURNAL_WRITES, NAME_BYTES, PIECE_BYTES, REQUESTS};
pub use problem::Problem;
pub use request::{Command, Failure, Refused, Request};
pub use saved::{SavedClient, SavedRequest, SavedWrite, Unfit};
pub use stream::{Driver, Status, Stream};

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Virtio sockets between guests, and from the host to guests (Virtual I/O Device 1.3, section 5.10): packets, the
//! connections of one guest, their limits and their credit.
//!
//! ```text
//! sender's driver ──► Header ──► Connections::send ──► Connections::receive ──► receiver's driver
//!                                 the sender's          the receiver's
//!                        refused ◄──────┴───────────────────────┘   the sender gets RST
//! ```
//!
//! Each guest has a table of its own, [`Connections`], which knows its ends of connections only. A packet passes two of
//! them, one after the other, so that no lock is shared by all. Every byte of a packet is untrusted. No payload passes
//! here: it is copied from guest to guest once there is a place for it, so that no guest can fill the host's memory.
//!
//! | module | section |
//! |---|---|
//! | [`Header`], [`Operation`] | 5.10.6: packets |
//! | [`Connections`] | 5.10.6.3, 5.10.6.6: buffer space, streams |
//! | [`Stream`] | the same: the host's own end of one |
#![no_std]
#![warn(missing_docs)]

#[cfg(test)]
extern crate std;

extern crate alloc;

mod connection;
mod connections;
mod header;
mod ring;
mod stream;

pub use connection::{Connection, Key, Phase};
pub use connections::{CONNECTIONS, CONNECTIONS_OF_PEER, Connections, Inconsistent, Refused};
pub use header::{Address, FIRST_CID, HEADER_BYTES, HOST_CID, Header, LAST_CID, Operation, STREAM};
pub use stream::{Outgoing, Progress, STREAM_BYTES, Stream, StreamPhase};

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! State of the host that is known last of all, and consoles.

use zerocopy::little_endian::{U32, U64};

use crate::layout::{Control, Stamps};
use crate::macros::plain;

/// The most [`ControlStream`]s in a block.
pub const MOST_CONTROL_STREAMS: usize = 32;

plain! {
    /// A guest's console: bytes that wait. Behind this come those that the guest has written, then those that were
    /// typed.
    pub struct Console since 2 {
        /// Bytes that the guest has written and no client has fetched.
        pub output_bytes: U32 as "bytes",
        /// Bytes that were typed and the guest has not taken.
        pub input_bytes: U32 as "bytes",
    }

    /// A guest's physical functions, by rising slot. Behind this comes each as an
    /// [`AssignedFunction`](super::AssignedFunction), of which what the guest changes does not count.
    pub struct Functions since 4 {
        /// How many.
        pub count: U32 as "count",
        /// Zero.
        pub zero: U32 as "zero",
    }

    /// A guest's memory on demand. Behind this come the physical addresses, as U64, of its blocks of 2 MiB in the order
    /// of their guest addresses, 0 for one that is not there, and of spare ones.
    pub struct OnDemand since 4 {
        /// Bytes that the guest was assured.
        pub assured_bytes: U64 as "bytes",
        /// How many blocks.
        pub blocks: U32 as "count",
        /// How many spare ones.
        pub spares: U32 as "count",
    }

    /// Streams that clients in guests have opened to the control channel. Behind this come the [`ControlStream`]s.
    pub struct ControlStreams since 4 {
        /// How many.
        pub count: U32 as "count",
        /// Zero.
        pub zero: U32 as "zero",
    }

    /// A stream that a client in a guest has opened to the control channel, with nothing on its way. Numbers of bytes
    /// are modulo 2^32.
    pub struct ControlStream since 4 {
        /// The guest's context identifier.
        pub cid: U32 as "number",
        /// The guest's port.
        pub port: U32 as "number",
        /// Bytes that the guest has received.
        pub delivered: U32 as "bytes",
        /// Bytes up to which the guest has stated room.
        pub room_until: U32 as "bytes",
        /// Bytes that the host has received.
        pub consumed: U32 as "bytes",
        /// Zero.
        pub zero: U32 as "zero",
        /// The state of the client's session.
        pub session: Control as "piece",
    }

    /// Streams of disks to their servers in guests. Behind this come the [`DiskStream`]s.
    pub struct DiskStreams since 4 {
        /// How many.
        pub count: U32 as "count",
        /// Zero.
        pub zero: U32 as "zero",
    }

    /// A disk's stream to its server, with nothing on its way. Numbers of bytes are modulo 2^32.
    pub struct DiskStream since 4 {
        /// The context identifier of the server's guest.
        pub cid: U32 as "number",
        /// The server's port.
        pub port: U32 as "number",
        /// The host's port; its remainder states which disk's stream it is.
        pub own_port: U32 as "number",
        /// Bytes that the server's guest has received.
        pub delivered: U32 as "bytes",
        /// Bytes up to which it has stated room.
        pub room_until: U32 as "bytes",
        /// Bytes that the host has received.
        pub consumed: U32 as "bytes",
    }

    /// The moment at which a paused guest was saved for a client. Its blocks follow: its [`super::Policy`], a
    /// [`super::Vcpu`] for each of its vCPUs, and its [`super::Devices`], all of guest 0.
    pub struct Saved since 4 {
        /// The host's time stamp counter.
        pub tsc: U64 as "ticks",
        /// Ticks of it in a second.
        pub tsc_hz: U64 as "Hz",
        /// Wall clock, since 1970.
        pub unix_ns: U64 as "ns",
        /// The guest's memory.
        pub memory_bytes: U64 as "bytes",
    }

    /// State that changes until the last moment, so that the record itself can be finished before guests stop.
    pub struct Late since 2 {
        /// Times of the old image's steps; they replace the record's.
        pub stamps: Stamps as "piece",
        /// The state of the control channel's session; takes the place of the record's.
        pub control: Control as "piece",
    }
}

impl Console {
    /// The bytes of both ways, out of a block's tail; `None` if their number is not the stated one.
    pub fn split<'a>(&self, tail: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        let (output, input) = tail.split_at_checked(self.output_bytes.get() as usize)?;
        (input.len() == self.input_bytes.get() as usize).then_some((output, input))
    }
}

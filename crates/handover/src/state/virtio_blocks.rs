// SPDX-License-Identifier: MIT OR Apache-2.0
//! The states of virtio devices, since version 4.

use zerocopy::little_endian::{U16, U32, U64};

use crate::macros::plain;

plain! {
    /// A virtio device of the host's: what its driver has negotiated and set up. A [`VirtioQueue`] for each queue
    /// follows, and then what the kind of device has of its own.
    pub struct Virtio since 4 {
        /// The features that the driver has accepted.
        pub features: U64 as "register",
        /// Which half of the offered features shows.
        pub device_feature_select: U32 as "register",
        /// Which half of the accepted features shows.
        pub driver_feature_select: U32 as "register",
        /// The MSI-X vector for changes of the configuration; 0xffff for none.
        pub config_vector: U16 as "register",
        /// The queue whose registers show.
        pub queue_select: U16 as "register",
        /// [`VirtioQueue`]s behind this.
        pub queues: U16 as "count",
        /// Device status.
        pub status: u8 as "register",
        /// Interrupt status.
        pub interrupt_status: u8 as "register",
        /// The generation of the configuration.
        pub generation: u8 as "number",
        /// Of [`super::virtio_flag`].
        pub flags: u8 as "flags",
        /// Zero.
        pub zero: [u8; 6] as "zero",
    }

    /// A split virtqueue.
    pub struct VirtioQueue since 4 {
        /// Where the descriptor table is.
        pub descriptors: U64 as "address",
        /// Where the available ring is.
        pub driver: U64 as "address",
        /// Where the used ring is.
        pub device: U64 as "address",
        /// Its descriptors.
        pub size: U16 as "count",
        /// Its MSI-X vector; 0xffff for none.
        pub vector: U16 as "register",
        /// Chains taken from the available ring, modulo 2^16.
        pub taken: U16 as "count",
        /// Chains published in the used ring, modulo 2^16.
        pub used: U16 as "count",
        /// Whether the driver has enabled it: 0 or 1.
        pub is_enabled: U32 as "number",
        /// Zero.
        pub zero: U32 as "zero",
    }

    /// A virtio block device whose storage is behind an NBD server: what the server stated of its export, and where the
    /// connection is. The [`BlkRequest`]s in flight follow, and then the [`BlkWrite`]s that are acknowledged and not
    /// stable.
    pub struct Blk since 4 {
        /// The export's size; with its block 0: none was negotiated.
        pub bytes: U64 as "bytes",
        /// The next request's number.
        pub sequence: U64 as "number",
        /// The next message's number.
        pub cookie: U64 as "number",
        /// The next flush's number.
        pub flush: U64 as "number",
        /// The export's smallest block.
        pub block: U32 as "bytes",
        /// The most data of one request.
        pub payload: U32 as "bytes",
        /// Bytes that are sent of the request that is being sent.
        pub sent: U32 as "bytes",
        /// Bytes of data that have arrived for the read that is being received.
        pub read: U32 as "bytes",
        /// The tag of the request that is being sent; 0xffff for none.
        pub sending: U16 as "number",
        /// The tag of the read that is being received; 0xffff for none.
        pub reading: U16 as "number",
        /// The export's transmission flags.
        pub export_flags: U16 as "flags",
        /// [`BlkRequest`]s.
        pub requests: U16 as "count",
        /// [`BlkWrite`]s.
        pub writes: U16 as "count",
        /// Bytes of `reply`.
        pub reply_bytes: u8 as "bytes",
        /// Of [`super::blk_flag`].
        pub flags: u8 as "flags",
        /// Zero.
        pub zero: U32 as "zero",
        /// The part of a reply that has arrived.
        pub reply: [u8; 16] as "number",
    }

    /// A request of a block device in flight. Its data stays in the guest's memory.
    pub struct BlkRequest since 4 {
        /// The first byte on the disk.
        pub offset: U64 as "bytes",
        /// Its place in the order of requests.
        pub sequence: U64 as "number",
        /// The cookie that its reply must state.
        pub cookie: U64 as "number",
        /// How long it has waited.
        pub waited_ns: U64 as "ns",
        /// Its length.
        pub bytes: U32 as "bytes",
        /// Bytes that the server has answered.
        pub done: U32 as "bytes",
        /// Bytes of the part that is being sent or unanswered.
        pub part: U32 as "bytes",
        /// The first descriptor of its chain; 128 is a flush of the device's own.
        pub tag: U16 as "number",
        /// 0 read, 1 write, 2 flush, 3 trim, 4 write zeroes, 5 the same where storage may be freed.
        pub command: u8 as "number",
        /// 1 it waits, 2 it is being sent, 3 it is sent.
        pub stage: u8 as "number",
        /// Whether its data is answered, and a flush for it is under way: 0 or 1.
        pub is_flushing: U32 as "number",
        /// Zero.
        pub zero: U32 as "zero",
    }

    /// A change that is acknowledged and not stable. The data of a write follows, padded to eight bytes.
    pub struct BlkWrite since 4 {
        /// The first byte on the disk.
        pub offset: U64 as "bytes",
        /// Its length.
        pub bytes: U32 as "bytes",
        /// As [`BlkRequest::command`].
        pub command: U32 as "number",
    }

    /// A virtio network device with more than one pair of queues.
    pub struct VirtioNet since 4 {
        /// The pairs that its driver uses.
        pub pairs: U16 as "count",
        /// Zero.
        pub zero: [u8; 6] as "zero",
    }

    /// A guest's memory balloon.
    pub struct Balloon since 4 {
        /// Pages of 4 KiB that the host wants in it.
        pub wanted: U32 as "count",
        /// Pages that the driver states to be in it.
        pub actual: U32 as "count",
        /// The blocks that the spare ones of [`OnDemand`](super::OnDemand) have become; 0xffffffff: none.
        pub spares: [U32; 16] as "numbers",
    }

    /// A guest's virtio socket device. The [`VsockConnection`]s follow, those of its table first, in order of port,
    /// peer and the peer's port.
    pub struct Vsock since 4 {
        /// The guest's context identifier.
        pub cid: U32 as "number",
        /// Bytes of the next packet's data that its receiver has already.
        pub passed: U32 as "bytes",
        /// Connections in its table.
        pub connections: U16 as "count",
        /// Packets that have been refused, for which the driver is still to get RST.
        pub refused: U16 as "count",
        /// Of [`super::vsock_flag`].
        pub flags: U32 as "flags",
    }

    /// The guest's end of a connection.
    pub struct VsockConnection since 4 {
        /// The guest's port.
        pub own_port: U32 as "number",
        /// The other end's context identifier.
        pub peer_cid: U32 as "number",
        /// The other end's port.
        pub peer_port: U32 as "number",
        /// How far it is: 0 the guest has asked for it, 1 the guest has been asked for it, 2 open, 3 the other end is
        /// gone and the driver is still to get RST.
        pub phase: U32 as "number",
        /// Bytes that the guest has received, modulo 2^32.
        pub delivered: U32 as "bytes",
        /// Bytes up to which the guest has stated room, modulo 2^32.
        pub room_until: U32 as "bytes",
    }
}

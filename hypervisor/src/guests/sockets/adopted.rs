// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's streams to guests as the image before has left them.

use alloc::vec::Vec;

use handover::block::{self, BlockError, Owner};
use handover::state::{BlockState, ControlStream, ControlStreams, DiskStream, DiskStreams};
use spin::Once;
use vm::devices::vsock::{HOST_CID, Key};
use wire::VSOCK_PORT;
use zerocopy::FromBytes;

use crate::kernel::inherited;

/// Those of clients in guests, and those of disks, once they are read.
static CLIENTS: Once<Vec<ControlStream>> = Once::new();
static DISKS: Once<Vec<DiskStream>> = Once::new();

/// Those of clients in guests. They are read when they are first asked for: before the memory of the image before is
/// given back.
pub fn clients() -> &'static [ControlStream] {
    CLIENTS.call_once(pieces::<ControlStreams, _>)
}

/// The same of disks.
pub fn disks() -> &'static [DiskStream] {
    DISKS.call_once(pieces::<DiskStreams, _>)
}

/// The pieces behind the structure of a block of the host's.
fn pieces<B: BlockState, P: FromBytes>() -> Vec<P> {
    let place = inherited::record().and_then(|record| record.block_of(B::KIND, 0, 0));
    let read = place.and_then(|place| inherited::with_block(place.start.get(), place.bytes.get(), read::<B, P>));
    let report = |error| log::error!("streams of the image before: {error}");
    read.and_then(|read| read.map_err(report).ok()).unwrap_or_default()
}

fn read<B: BlockState, P: FromBytes>(bytes: &[u8]) -> Result<Vec<P>, BlockError> {
    let (_, tail) = block::open::<B>(bytes, Owner { guest: 0, vcpu: 0 })?;
    Ok(tail.chunks_exact(size_of::<P>()).filter_map(|bytes| P::read_from_bytes(bytes).ok()).collect())
}

/// Returns whether this connection to the host, as its guest's table has it, is among them.
pub(super) fn has(cid: u32, key: &Key) -> bool {
    let guest = (cid, key.own_port);
    let is_client = |stream: &ControlStream| (stream.cid.get(), stream.port.get()) == guest;
    let is_disk =
        |stream: &DiskStream| (stream.cid.get(), stream.port.get()) == guest && stream.own_port.get() == key.peer.port;
    let is_one =
        if key.peer.port == VSOCK_PORT { clients().iter().any(is_client) } else { disks().iter().any(is_disk) };
    key.peer.cid == HOST_CID && is_one
}

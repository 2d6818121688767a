// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's streams to guests as the image before has left them.

use alloc::vec::Vec;

use handover::block::{self, BlockError, Owner};
use handover::state::{BlockState, ControlStream, ControlStreams, DiskStream, DiskStreams};
use spin::Once;
use vm::devices::vsock::{Address, HOST_CID, Key};
use wire::VSOCK_PORT;
use zerocopy::FromBytes;

use crate::kernel::inherited;

/// Those of clients in guests, once they are read.
static CLIENTS: Once<Vec<ControlStream>> = Once::new();

/// Those of clients in guests. They are read when they are first asked for: before the memory of the image before is
/// given back.
pub fn clients() -> &'static [ControlStream] {
    CLIENTS.call_once(pieces::<ControlStreams, _>)
}

/// Those of disks. The caller keeps them: before the memory of the image before is given back.
pub(super) fn disks() -> Vec<DiskStream> {
    pieces::<DiskStreams, _>()
}

/// What lies behind the structure of a block of the host's.
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

/// Returns whether this connection to the host, as its guest's table has it, is a client's among them.
pub(super) fn has_client(cid: u32, key: &Key) -> bool {
    let host = Address { cid: HOST_CID, port: VSOCK_PORT };
    let is_it = |stream: &ControlStream| (stream.cid.get(), stream.port.get()) == (cid, key.own_port);
    key.peer == host && clients().iter().any(is_it)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The streams of clients in guests as the image before has left them.

use handover::block::{self, BlockError, Owner};
use handover::state::{BlockKind, ControlStream, ControlStreams, MOST_CONTROL_STREAMS};
use spin::Once;
use vm::devices::vsock::{Address, HOST_CID, Key};
use wire::VSOCK_PORT;
use zerocopy::FromBytes as _;

use crate::kernel::inherited;

/// The streams, once they are read.
static ADOPTED: Once<inherited::ControlStreams> = Once::new();

/// All of them. They are read when they are first asked for: before the memory of the image before is given back.
pub fn all() -> &'static [ControlStream] {
    ADOPTED.call_once(|| {
        let place = inherited::record().and_then(|record| record.block_of(BlockKind::ControlStreams, 0, 0));
        let read = place.and_then(|place| inherited::with_block(place.start.get(), place.bytes.get(), read));
        let report = |error| log::error!("control: streams of guests: {error}");
        read.and_then(|read| read.map_err(report).ok()).unwrap_or_default()
    })
}

fn read(bytes: &[u8]) -> Result<inherited::ControlStreams, BlockError> {
    let (_, tail) = block::open::<ControlStreams>(bytes, Owner { guest: 0, vcpu: 0 })?;
    let streams = tail.chunks_exact(size_of::<ControlStream>()).take(MOST_CONTROL_STREAMS);
    Ok(streams.filter_map(|bytes| ControlStream::read_from_bytes(bytes).ok()).collect())
}

/// Returns whether this connection to the host, as its guest's table has it, is among them.
pub(super) fn has(cid: u32, key: &Key) -> bool {
    let host = Address { cid: HOST_CID, port: VSOCK_PORT };
    let is_it = |stream: &ControlStream| (stream.cid.get(), stream.port.get()) == (cid, key.own_port);
    key.peer == host && all().iter().any(is_it)
}

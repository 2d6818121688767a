// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams of disks across an update: those through which nothing is on its way go on in the next image. The others
//! end, and their disks connect again.

use handover::state::DiskStream;
use spin::Once;
use vm::devices::blk::Socket;
use vm::devices::vsock::{Address, Progress};
use zerocopy::IntoBytes as _;

use super::adopted;
use super::streams::{COUNT, STREAMS, Stream, at};
use crate::guests::slots::GUESTS;

/// The streams of the image before go on.
static RESUMED: Once<()> = Once::new();

/// The number of streams.
pub fn count() -> usize {
    STREAMS.iter().map(|slot| slot.lock().len()).sum()
}

/// Writes those that can go on in the next image; returns how many. Allocates nothing, and waits for no lock.
pub fn save(into: &mut [u8]) -> usize {
    let mut places = into.chunks_exact_mut(size_of::<DiskStream>());
    let mut count = 0;
    for streams in STREAMS.iter().filter_map(|slot| slot.try_lock()) {
        for (saved, place) in streams.iter().filter_map(|stream| saved(stream)).zip(&mut places) {
            place.copy_from_slice(saved.as_bytes());
            count += 1;
        }
    }
    count
}

/// The progress of a stream for the next image, in which its guest has its rank as its number.
fn saved(stream: &Stream) -> Option<DiskStream> {
    let has_same_number = GUESTS.at(stream.guest)?.rank() == stream.guest;
    let progress = stream.socket.try_lock()?.stream().progress().filter(|_| has_same_number)?;
    let Progress { peer, own_port, delivered, room_until, consumed } = progress;
    Some(DiskStream {
        cid: peer.cid.into(),
        port: peer.port.into(),
        own_port: own_port.into(),
        delivered: delivered.into(),
        room_until: room_until.into(),
        consumed: consumed.into(),
    })
}

/// Goes on with the streams of the image before, once: before any of them is used.
pub fn resume_all() {
    RESUMED.call_once(|| adopted::disks().iter().for_each(resume));
}

fn resume(from: &DiskStream) {
    let progress = Progress {
        peer: Address { cid: from.cid.get(), port: from.port.get() },
        own_port: from.own_port.get(),
        delivered: from.delivered.get(),
        room_until: from.room_until.get(),
        consumed: from.consumed.get(),
    };
    if let Some(stream) = at(Socket::number_of(progress.own_port, COUNT)) {
        // If it is not possible, the server's next packet is refused, and the disk connects again.
        stream.socket.lock().resume(&progress);
        stream.wake();
    }
}

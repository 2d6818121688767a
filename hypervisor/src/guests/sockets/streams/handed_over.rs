// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams across an update: those through which nothing is on its way go on in the next image. The others end, and
//! their disks connect again.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use handover::state::DiskStream;
use spin::Once;
use vm::devices::blk::Socket;
use vm::devices::vsock::{self, Address, HOST_CID, Key, Progress, StreamPhase};
use zerocopy::IntoBytes as _;

use super::super::adopted;
use super::{COUNT, STREAMS, Stream, at};
use crate::guests::slots::GUESTS;

/// The streams of the image before that go on here.
static RESUMED: Once<Vec<DiskStream>> = Once::new();
/// What servers send waits in their guests' queues: an update is about to go.
static IS_HELD: AtomicBool = AtomicBool::new(false);

impl Stream {
    /// Returns whether nothing is on its way, or the connection is none that could go on.
    fn is_quiet(&self) -> bool {
        let is_quiet = |stream: &vsock::Stream| stream.phase() != StreamPhase::Open || stream.progress().is_some();
        self.socket.try_lock().is_some_and(|mut socket| is_quiet(socket.stream()))
    }

    /// Returns its progress for the next image, in which the guest has its rank as its number.
    fn saved(&self) -> Option<DiskStream> {
        let has_same_number = GUESTS.at(self.guest)?.rank() == self.guest;
        let progress = self.socket.try_lock()?.stream().progress().filter(|_| has_same_number)?;
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
}

/// Lets what servers send wait in their guests' queues, or no longer. Returns whether nothing is on its way any more.
pub fn hold(is_held: bool) -> bool {
    IS_HELD.store(is_held, Ordering::Relaxed);
    !is_held || STREAMS.iter().all(|slot| slot.lock().iter().all(|stream| stream.is_quiet()))
}

/// Returns whether what servers send waits.
pub(super) fn are_held() -> bool {
    IS_HELD.load(Ordering::Relaxed)
}

/// The number of streams.
pub fn count() -> usize {
    STREAMS.iter().map(|slot| slot.lock().len()).sum()
}

/// Writes those that can go on in the next image; returns how many. Allocates nothing, and waits for no lock.
pub fn save(into: &mut [u8]) -> usize {
    let mut places = into.chunks_exact_mut(size_of::<DiskStream>());
    let mut count = 0;
    for streams in STREAMS.iter().filter_map(|slot| slot.try_lock()) {
        for (saved, place) in streams.iter().filter_map(|stream| stream.saved()).zip(&mut places) {
            place.copy_from_slice(saved.as_bytes());
            count += 1;
        }
    }
    count
}

/// Returns the streams of the image before that go on. The first call resumes them: before any is used.
pub fn resumed() -> &'static [DiskStream] {
    RESUMED.call_once(|| {
        let mut streams = adopted::disks();
        streams.retain(resume);
        streams
    })
}

fn resume(from: &DiskStream) -> bool {
    let progress = Progress {
        peer: Address { cid: from.cid.get(), port: from.port.get() },
        own_port: from.own_port.get(),
        delivered: from.delivered.get(),
        room_until: from.room_until.get(),
        consumed: from.consumed.get(),
    };
    at(Socket::number_of(progress.own_port, COUNT)).is_some_and(|stream| {
        let goes_on = stream.socket.lock().resume(&progress);
        stream.wake();
        goes_on
    })
}

/// Returns whether this connection to the host, as its guest's table has it, goes on from the image before.
pub fn goes_on(cid: u32, key: &Key) -> bool {
    let is_it = |stream: &&DiskStream| {
        (stream.cid.get(), stream.port.get(), stream.own_port.get()) == (cid, key.own_port, key.peer.port)
    };
    key.peer.cid == HOST_CID && resumed().iter().any(|stream| is_it(&stream))
}

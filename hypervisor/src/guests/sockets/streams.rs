// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's own streams to servers in guests: one for each disk. Those with nothing on their way when the host is
//! updated go on in the next image.
//!
//! The vCPU of the guest that has the disk sends, and is charged for it; that of the server's guest forwards the
//! server's answers. A stream's lock is taken before the port's of the server's guest, and never while a device of that
//! guest is locked.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use bundle::{DiskConfig, limits};
use spin::Mutex;
use vm::devices::blk::{Figures, Socket};
use vm::devices::virtio::Chain;
use vm::devices::vsock::{self, Address, HEADER_BYTES, Outgoing, Packet, Received, StreamPhase};
use vm::memory::GuestMemory;

use super::port::{find, with_by};
use crate::arch::cpu;
use crate::arch::percpu::PerCpu;
use crate::guests::forwarding::{Kick, Run};
use crate::guests::slots::GUESTS;

/// Packets that one turn sends.
const PACKETS: usize = 32;

/// The streams of the guests' disks, by the guests' numbers.
pub(super) static STREAMS: [Mutex<Vec<Arc<Stream>>>; limits::GUESTS] =
    [const { Mutex::new(Vec::new()) }; limits::GUESTS];
/// Streams that there can be: the number of each is its guest's and its disk's.
pub(super) const COUNT: u16 = (limits::GUESTS * limits::DISKS) as u16;

/// Packets of servers wait in their guests' queues: an update is about to go.
static IS_HELD: AtomicBool = AtomicBool::new(false);

/// The stream of a disk.
pub struct Stream {
    /// The guest that has the disk.
    pub guest: u32,
    server: Address,
    /// The stream itself. The vCPU that works for the disk holds it for a bounded time.
    pub socket: Mutex<Socket>,
    /// Something has come, or the stream has ended, since the disk's last turn.
    has_news: AtomicBool,
    /// The disk's figures after its last turn.
    pub figures: Mutex<Figures>,
}

/// How far the sending has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// There is no more for which the server's guest has stated room.
    All,
    /// There is more than one turn sends.
    More,
    /// The server's guest has no buffers.
    Full,
    /// No socket accepts it, or the stream is unknown there: it is closed.
    Refused,
}

/// Makes the streams of a guest's disks.
pub(super) fn add(guest: u32, disks: &[DiskConfig]) {
    let stream = |(number, disk): (usize, &DiskConfig)| {
        let (server, number) = (Address { cid: disk.cid, port: disk.port }, guest as usize * limits::DISKS + number);
        // The image before may have begun anywhere: its packets may still be on the way.
        let socket = Mutex::new(Socket::new(server, number as u16, COUNT, cpu::tsc() as u32));
        Arc::new(Stream { guest, server, socket, has_news: AtomicBool::new(false), figures: Mutex::default() })
    };
    replace(guest, disks.iter().enumerate().map(stream).collect());
}

/// Removes them.
pub(super) fn remove(guest: u32) {
    replace(guest, Vec::new());
}

fn replace(guest: u32, streams: Vec<Arc<Stream>>) {
    if let Some(slot) = STREAMS.get(guest as usize) {
        let before = core::mem::replace(&mut *slot.lock(), streams);
        // This may be the last of them: not under the lock.
        drop(before);
    }
}

/// The streams of a guest's disks, in their order.
pub fn of(guest: u32) -> Vec<Arc<Stream>> {
    STREAMS.get(guest as usize).map_or_else(Vec::new, |slot| slot.lock().clone())
}

/// The stream of this number.
pub(super) fn at(number: usize) -> Option<Arc<Stream>> {
    STREAMS.get(number / limits::DISKS)?.lock().get(number % limits::DISKS).cloned()
}

impl Stream {
    /// The disk is about to work: it sees what has come until now.
    pub fn begin_turn(&self) {
        self.has_news.store(false, Ordering::Release);
    }

    /// Sends what the stream has to send, in a vCPU's time, `until` others want the CPU.
    pub fn send(&self, socket: &mut Socket, until: u64) -> Sent {
        send(socket.stream(), Kick::Behind, until)
    }

    /// Returns whether nothing is on its way, or the connection is none that could go on.
    fn is_quiet(&self) -> bool {
        let is_quiet = |stream: &vsock::Stream| stream.phase() != StreamPhase::Open || stream.progress().is_some();
        self.socket.try_lock().is_some_and(|mut socket| is_quiet(socket.stream()))
    }

    /// The disk's guest is to work for it.
    pub(super) fn wake(&self) {
        if !self.has_news.swap(true, Ordering::AcqRel) {
            GUESTS.at(self.guest).into_iter().for_each(|guest| guest.poll_devices());
        }
    }
}

/// A guest's packet comes to one of the host's streams. [`Received::Part`]: it is to be tried again soon.
pub(super) fn receive(run: &dyn Run, packet: &Packet, chain: &Chain) -> Received {
    let header = packet.header();
    let number = Socket::number_of(header.destination.port, COUNT);
    let Some(stream) = at(number).filter(|stream| stream.server == header.source) else {
        return Received::Refused;
    };
    if IS_HELD.load(Ordering::Relaxed) {
        return Received::Part;
    }
    let Some(mut socket) = stream.socket.try_lock() else { return Received::Part };
    let received = take_in(socket.stream(), run, packet, chain);
    drop(socket);
    stream.wake();
    received
}

/// Sends what a stream has to send, `until` others want the CPU. The CPU of the server's guest is notified so.
pub(super) fn send(stream: &mut vsock::Stream, kick: Kick, until: u64) -> Sent {
    for packet in 0..PACKETS {
        if packet > 0 && cpu::tsc() >= until {
            break;
        }
        let cid = stream.peer().cid;
        let Some(Outgoing { header, data }) = stream.next() else { return Sent::All };
        let (mut packet, mut received) = (Packet::of_host(header), Received::Refused);
        if let Some(port) = find(cid) {
            with_by(&port, kick, |vsock, io, _| {
                received = vsock.receive_of_host(&mut packet, data, io)?;
                Ok(())
            });
        }
        match received {
            Received::All | Received::Part => stream.note_sent(&header, packet.passed()),
            Received::Full => {
                if packet.passed() > 0 {
                    stream.note_sent(&header, packet.passed());
                }
                PerCpu::current().calls.for_way();
                return Sent::Full;
            }
            Received::Refused | Received::Sender(_) => {
                stream.note_refused(&header);
                return Sent::Refused;
            }
        }
    }
    Sent::More
}

/// A stream takes a guest's packet: it has room for all that the guest may send.
pub(super) fn take_in(stream: &mut vsock::Stream, run: &dyn Run, packet: &Packet, chain: &Chain) -> Received {
    let Ok(places) = stream.accept(packet.header()) else { return Received::Refused };
    let (memory, mut done): (&dyn GuestMemory, usize) = (run.machine().memory(), 0);
    let copied = places.into_iter().try_for_each(|place| {
        chain.read(memory, (HEADER_BYTES + done) as u32, place)?;
        done += place.len();
        Ok(())
    });
    match copied {
        Ok(()) => {
            stream.note_received(done as u32);
            Received::All
        }
        Err(fault) => Received::Sender(fault),
    }
}

/// Resets all streams of a guest that is gone, or has dropped its connections.
pub(super) fn reset_all_of(cid: u32) {
    for stream in (0..usize::from(COUNT)).filter_map(at).filter(|stream| stream.server.cid == cid) {
        stream.socket.lock().stream().note_gone();
        stream.wake();
    }
}

/// Lets what servers send wait in their guests' queues, or no longer. Returns whether nothing is on its way any more.
pub fn hold(is_held: bool) -> bool {
    IS_HELD.store(is_held, Ordering::Relaxed);
    !is_held || STREAMS.iter().all(|slot| slot.lock().iter().all(|stream| stream.is_quiet()))
}

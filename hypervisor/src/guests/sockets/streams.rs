// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's own streams to servers in guests: one for each disk.
//!
//! The vCPU of the guest that has the disk sends, and is charged for it; that of the server's guest forwards the
//! server's answers. A stream's lock is taken before the port's of the server's guest, and never while a device of that
//! guest is locked.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use bundle::GuestConfig;
use spin::{Mutex, Once};
use vm::devices::blk::Socket;
use vm::devices::virtio::Chain;
use vm::devices::vsock::{self, Address, HEADER_BYTES, Outgoing, Packet, Received};
use vm::memory::GuestMemory;

use super::port::{find, with};
use crate::arch::cpu;
use crate::guests::forwarding::Run;
use crate::guests::slots::GUESTS;

/// Packets that one turn sends.
const PACKETS: usize = 32;

/// The streams of all disks, in the bundle's order.
static STREAMS: Once<Vec<Stream>> = Once::new();

/// The stream of a disk.
pub struct Stream {
    /// The guest that has the disk.
    guest: u32,
    server: Address,
    /// The stream itself. The vCPU that works for the disk holds it for a bounded time.
    pub socket: Mutex<Socket>,
    /// Something has come, or the stream has ended, since the disk's last turn.
    has_news: AtomicBool,
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

/// Makes the streams of a bundle's disks.
pub(super) fn create(guests: &[GuestConfig]) {
    let disks = || (0..).zip(guests).flat_map(|(guest, config)| config.disks.iter().map(move |disk| (guest, disk)));
    let count = disks().count() as u16;
    let stream = |(number, (guest, disk)): (u16, (u32, &bundle::DiskConfig))| {
        let server = Address { cid: disk.cid, port: disk.port };
        // The image before may have begun anywhere: its packets may still be on the way.
        let socket = Mutex::new(Socket::new(server, number, count, cpu::tsc() as u32));
        Stream { guest, server, socket, has_news: AtomicBool::new(false) }
    };
    STREAMS.call_once(|| (0..).zip(disks()).map(stream).collect());
}

fn all() -> &'static [Stream] {
    STREAMS.get().map_or(&[], |streams| streams)
}

/// The streams of a guest's disks, in their order.
pub fn of(guest: u32) -> impl Iterator<Item = &'static Stream> {
    all().iter().filter(move |stream| stream.guest == guest)
}

impl Stream {
    /// The disk is about to work: it sees what has come until now.
    pub fn begin_turn(&self) {
        self.has_news.store(false, Ordering::Release);
    }

    /// Sends what the stream has to send.
    pub fn send(&self, socket: &mut Socket) -> Sent {
        send(socket.stream())
    }

    /// The disk's guest is to work for it.
    fn wake(&self) {
        if !self.has_news.swap(true, Ordering::AcqRel) {
            GUESTS.at(self.guest).into_iter().for_each(|guest| guest.poll_devices());
        }
    }
}

/// A guest's packet comes to one of the host's streams. [`Received::Part`]: it is to be tried again soon.
pub(super) fn receive(run: &dyn Run, packet: &Packet, chain: &Chain) -> Received {
    let (header, streams) = (packet.header(), all());
    let number = Socket::number_of(header.destination.port, streams.len() as u16);
    let Some(stream) = streams.get(number).filter(|stream| stream.server == header.source) else {
        return Received::Refused;
    };
    let Some(mut socket) = stream.socket.try_lock() else { return Received::Part };
    let received = take_in(socket.stream(), run, packet, chain);
    drop(socket);
    stream.wake();
    received
}

/// Sends what a stream has to send.
pub(super) fn send(stream: &mut vsock::Stream) -> Sent {
    for _ in 0..PACKETS {
        let cid = stream.peer().cid;
        let Some(Outgoing { header, data }) = stream.next() else { return Sent::All };
        let (mut packet, mut received) = (Packet::of_host(header), Received::Refused);
        if let Some((_, port)) = find(cid) {
            with(port, |vsock, io, _| {
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
    for stream in all().iter().filter(|stream| stream.server.cid == cid) {
        stream.socket.lock().stream().note_gone();
        stream.wake();
    }
}

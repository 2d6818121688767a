// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams that clients in guests open to the host's control channel.
//!
//! The vCPU of the client's guest puts what the client sends into the stream's buffer, and wakes the CPU that serves
//! the channel; that CPU sends the answers. A line's lock is taken before the port's of its guest.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use bundle::{ControlRights, GuestConfig, GuestControl};
use handover::state::{ControlStream, MOST_CONTROL_STREAMS};
use session::Grant;
use spin::{Mutex, Once};
use vm::devices::virtio::Chain;
use vm::devices::vsock::{Address, Operation, Packet, Progress, Received, Stream, StreamPhase};
use wire::VSOCK_PORT;

use super::streams::{self, Sent};
use super::{adopted, succession};
use crate::arch::percpu::{BOOT_CPU, wake};
use crate::guests::control_keys::role_of;
use crate::guests::forwarding::{Kick, Run};
use crate::kernel::inherited::{ChannelState, channel_state_of};

/// The streams that clients in one guest may have at once.
const LINES_OF_GUEST: usize = 4;
const _: () = assert!(LINES_OF_GUEST * bundle::limits::CONTROL_GUESTS == MOST_CONTROL_STREAMS);

/// The lines of all guests, in the bundle's order.
static LINES: Once<Vec<Line>> = Once::new();
/// The streams of the image before are in their lines.
static RESUMED: Once<()> = Once::new();
/// Something has come, or a stream has ended, since the channel was last served.
static HAS_NEWS: AtomicBool = AtomicBool::new(false);

/// The place for a stream of a client in a guest.
pub struct Line {
    cid: u32,
    /// The requests that its clients may send.
    pub grant: Grant,
    state: Mutex<State>,
}

struct State {
    stream: Stream,
    /// The number of the stream, one after another.
    number: u32,
    /// The guest's packets wait in its queue: an update is about to go.
    is_held: bool,
    /// The client's session, if the image before has begun it.
    session: Option<ChannelState>,
}

/// Makes the lines of a bundle's guests.
pub(super) fn create(guests: &[GuestConfig]) {
    let line = |(cid, grant): (u32, Grant)| {
        let stream = Stream::new(Address { cid, port: 0 });
        Line { cid, grant, state: Mutex::new(State { stream, number: 0, is_held: false, session: None }) }
    };
    let grants = guests.iter().filter_map(|guest| Some((guest.vsock.as_ref()?.cid, grant(guest)?)));
    let lines = grants.flat_map(|grant| core::iter::repeat_n(grant, LINES_OF_GUEST));
    LINES.call_once(|| lines.take(MOST_CONTROL_STREAMS).map(line).collect());
}

fn grant(guest: &GuestConfig) -> Option<Grant> {
    let GuestControl { role, rights: ControlRights { console, dump, devices } } = guest.control()?;
    Some(Grant { guest: guest.name.clone(), role: role_of(role)?, console, dump, devices })
}

/// All lines.
pub fn lines() -> &'static [Line] {
    LINES.get().map_or(&[], |lines| lines)
}

/// The channel is about to be served: news from now on wakes its CPU again.
pub fn take_news() {
    HAS_NEWS.store(false, Ordering::Release);
}

/// A guest's packet comes to a line. `None`: to none of them. [`Received::Part`]: it is to be tried again soon.
pub(super) fn receive(run: &dyn Run, packet: &Packet, chain: &Chain) -> Option<Received> {
    resume_all();
    let header = packet.header();
    let mut free = None;
    for line in lines().iter().filter(|line| line.cid == header.source.cid && header.destination.port == VSOCK_PORT) {
        let Some(mut state) = line.state.try_lock() else { return Some(Received::Part) };
        if state.stream.is_free() {
            free = free.or(Some(line));
        } else if state.stream.peer() == header.source {
            let received = if state.is_held { Received::Part } else { state.take_in(run, packet, chain) };
            return Some(received);
        }
    }
    let line = free.filter(|_| header.operation == Some(Operation::Request))?;
    let Some(mut state) = line.state.try_lock() else { return Some(Received::Part) };
    if state.is_held {
        return Some(Received::Part);
    }
    state.stream.answer(header);
    (state.number, state.session) = (state.number.wrapping_add(1), None);
    notify();
    Some(Received::All)
}

fn notify() {
    if !HAS_NEWS.swap(true, Ordering::AcqRel) {
        wake(BOOT_CPU);
    }
}

/// Ends all streams of a guest that is gone, or has dropped its connections.
pub(super) fn reset_all_of(cid: u32) {
    for line in lines().iter().filter(|line| line.cid == cid) {
        line.state.lock().stream.note_gone();
        notify();
    }
}

/// Goes on with the streams of the image before, once: before anything comes from a guest.
pub fn resume_all() {
    RESUMED.call_once(|| adopted::clients().iter().for_each(resume));
    succession::resume_all();
}

fn resume(from: &ControlStream) {
    let progress = Progress {
        peer: Address { cid: from.cid.get(), port: from.port.get() },
        own_port: VSOCK_PORT,
        delivered: from.delivered.get(),
        room_until: from.room_until.get(),
        consumed: from.consumed.get(),
    };
    let mut own = lines().iter().filter(|line| line.cid == progress.peer.cid);
    if let Some(mut state) = own.find_map(|line| Some(line.state.lock()).filter(|state| state.stream.is_free())) {
        // If it is not possible, the guest's next packet is refused.
        state.stream.resume(&progress);
        (state.number, state.session) = (1, Some(channel_state_of(from.session)));
    }
}

impl State {
    fn take_in(&mut self, run: &dyn Run, packet: &Packet, chain: &Chain) -> Received {
        let received = streams::take_in(&mut self.stream, run, packet, chain);
        notify();
        received
    }
}

impl Line {
    /// Returns the number of the stream that there is.
    pub fn number(&self) -> Option<u32> {
        let state = self.state.lock();
        (!state.stream.is_free()).then_some(state.number)
    }

    /// Returns the session that the image before has begun over this stream.
    pub fn take_session(&self) -> Option<ChannelState> {
        self.state.lock().session.take()
    }

    /// Receives what the client of this stream has sent; returns how many bytes. None, if there is another stream.
    pub fn receive(&self, number: u32, into: &mut [u8]) -> usize {
        let mut state = self.state.lock();
        if state.number == number { state.stream.receive(into) } else { 0 }
    }

    /// Takes bytes for the client of this stream; returns how many. None, if there is another stream.
    pub fn offer(&self, number: u32, bytes: &[u8]) -> usize {
        let mut state = self.state.lock();
        if state.number == number { state.stream.send(bytes) } else { 0 }
    }

    /// Sends what the stream has for the client. One that the client has ended is ended.
    pub fn flush(&self) -> Sent {
        let stream = &mut self.state.lock().stream;
        if stream.phase() == StreamPhase::Closed && stream.is_drained() && !stream.is_free() {
            stream.reset();
        }
        streams::send(stream, Kick::AtOnce, u64::MAX)
    }

    /// Lets all that the client sends wait, if nothing is on its way. Returns whether it does.
    pub fn hold(&self) -> bool {
        let mut state = self.state.lock();
        state.is_held |= state.stream.is_free() || state.stream.progress().is_some();
        state.is_held
    }

    /// Receives again what the client sends.
    pub fn release(&self) {
        self.state.lock().is_held = false;
    }

    /// Returns the stream, and the client's session, as the next image goes on with them; `None` if it cannot.
    pub fn save(&self, number: u32, session: &ChannelState) -> Option<ControlStream> {
        let state = self.state.try_lock().filter(|state| state.number == number)?;
        let Progress { peer, delivered, room_until, consumed, .. } = state.stream.progress()?;
        Some(ControlStream {
            cid: peer.cid.into(),
            port: peer.port.into(),
            delivered: delivered.into(),
            room_until: room_until.into(),
            consumed: consumed.into(),
            zero: 0.into(),
            session: session.section(0),
        })
    }
}

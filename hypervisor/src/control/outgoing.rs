// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output: responses, and the streams that were subscribed to, each from where the last turn ended.
//!
//! Nothing here waits for the reader. Frames go into a bounded queue, and from there to the UART as it takes them;
//! while the queue is full, log, events and consoles stay where they are, and responses are dropped.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use uart::{Interrupts, Patience};
use wire::{EncodeError, Frame, MAX_FRAME_BYTES, Refusal, RefusalCode, Response, Stream, Subscription, encode};

use crate::arch::cpu;
use crate::arch::serial::Uart;
use crate::guests::events;
use crate::kernel::console::log::{Follower, to_wire};
use crate::kernel::inherited::ChannelState;

/// Bytes that wait for the line.
const QUEUE_BYTES: usize = 64 * 1024;
/// Of these, kept free for responses.
const RESPONSE_BYTES: usize = 4 * MAX_FRAME_BYTES;

/// The line that the frames go over.
pub trait Sink {
    /// True unless no client will ever read.
    fn is_there(&self) -> bool;
    /// Takes some of these bytes; returns how many.
    fn offer(&mut self, bytes: &[u8]) -> usize;
    /// Announces room, for as long as something waits for it.
    fn watch(&mut self, waits: bool);
}

impl Sink for Uart {
    fn is_there(&self) -> bool {
        self.found().is_some()
    }

    fn offer(&mut self, bytes: &[u8]) -> usize {
        let taken = Uart::offer(self, bytes);
        cpu::take_pending_interrupts();
        taken
    }

    fn watch(&mut self, waits: bool) {
        Uart::watch(self, if waits { Interrupts::all() } else { Interrupts::RECEIVED });
    }
}

/// The frames that wait, and the positions of the streams.
pub struct Outgoing {
    subscription: Subscription,
    /// The guests whose consoles are sent; empty: all guests.
    consoles_of: Vec<String>,
    /// A client has subscribed.
    is_asked: bool,
    log: Follower,
    next_event: u64,
    queue: Queue,
}

/// Encoded frames on their way to the line.
struct Queue {
    waiting: VecDeque<u8>,
    buffer: Box<[u8; MAX_FRAME_BYTES]>,
}

impl Outgoing {
    /// Continues a channel from its state. Anything that stood on the line before is ended first.
    pub fn resume(channel_state: &ChannelState) -> Self {
        const END_OF_FRAME: u8 = 0;
        let mut waiting = VecDeque::with_capacity(QUEUE_BYTES);
        waiting.push_back(END_OF_FRAME);
        let queue = Queue { waiting, buffer: Box::new([0; MAX_FRAME_BYTES]) };
        let &ChannelState { subscription, log_since, next_event, .. } = channel_state;
        let is_asked = subscription != Subscription::default();
        let (log, consoles_of) = (Follower::since(log_since), Vec::new());
        Self { subscription, consoles_of, is_asked, log, next_event, queue }
    }

    /// Returns the channel's state, for the next image.
    pub fn channel_state(&self, request: Option<u32>) -> ChannelState {
        let log_since = self.log.ticks().saturating_add(1);
        let (subscription, next_event) = (self.subscription, self.next_event);
        ChannelState { request, subscription, log_since, next_event, ..ChannelState::default() }
    }

    /// Returns whether log records are sent.
    pub fn follows_log(&self) -> bool {
        self.subscription.log
    }

    /// Returns whether this guest's output is sent.
    pub fn follows(&self, guest: &str) -> bool {
        let is_chosen = self.consoles_of.is_empty() || self.consoles_of.iter().any(|name| name == guest);
        self.subscription.consoles && is_chosen
    }

    /// Returns whether there is room for a guest's output.
    pub fn has_room(&self) -> bool {
        self.queue.has_room()
    }

    /// Queues a guest's output; it is dropped if there is no room.
    pub fn push_console(&mut self, name: &str, bytes: &[u8]) {
        self.queue.push_stream(Stream::Console { name: Cow::Borrowed(name), bytes: Cow::Borrowed(bytes) });
    }

    /// Returns whether nothing waits to be sent.
    pub fn is_quiet(&self) -> bool {
        self.queue.waiting.is_empty()
    }

    /// Streams from now on what `subscription` names. Log and events begin with the oldest that are kept.
    pub fn subscribe(&mut self, subscription: Subscription) {
        if subscription.log && !self.subscription.log {
            self.log = Follower::since(0);
        }
        if subscription.events && !self.subscription.events {
            self.next_event = 0;
        }
        (self.subscription, self.is_asked) = (subscription, true);
        self.consoles_of.clear();
    }

    /// Streams from now on the consoles of these guests alone. The choice is not handed over: the next image sends all.
    pub fn subscribe_consoles(&mut self, names: Vec<String>) {
        (self.subscription.consoles, self.is_asked) = (!names.is_empty(), true);
        self.consoles_of = names;
    }

    /// Sends a response; one that is too long for a frame becomes a refusal with that reason.
    pub fn respond(&mut self, response: Response) {
        let id = response.id;
        if self.queue.push(&Frame::Response(response)).is_err() {
            let refusal = Refusal {
                code: RefusalCode::Failed,
                reason: "the answer does not fit a frame".into(),
                hint: "ask for fewer items at once".into(),
            };
            let _ = self.queue.push(&Frame::Response(Response { id, result: Err(refusal) }));
        }
    }

    /// Gives the line what it takes, to make room.
    pub fn flush(&mut self, sink: &mut dyn Sink) {
        self.queue.flush(sink);
    }

    /// Queues what is new since the last turn, and gives the line what it takes.
    pub fn pump(&mut self, sink: &mut dyn Sink) {
        self.gather();
        self.queue.flush(sink);
        sink.watch(!self.queue.waiting.is_empty());
    }

    /// Returns whether a client has subscribed.
    pub fn is_asked(&self) -> bool {
        self.is_asked
    }

    /// Sends events and consoles, whatever was subscribed to. Returns what was.
    pub fn open_streams(&mut self) -> Subscription {
        let asked = self.subscription;
        (self.subscription.events, self.subscription.consoles) = (true, true);
        asked
    }

    /// Sends what `subscription` names, from where the streams are.
    pub fn set_subscription(&mut self, subscription: Subscription) {
        self.subscription = subscription;
    }

    /// Queues new events and log records while there is room.
    pub fn gather(&mut self) {
        self.pump_events();
        if self.subscription.log {
            self.pump_log();
        }
    }

    /// Sends all that waits with the patience of last words; whether it went out.
    pub fn send_all(&mut self, uart: &mut Uart) -> bool {
        self.queue.send_all(uart)
    }

    fn pump_events(&mut self) {
        if self.subscription.events {
            self.next_event = events::visit_from(self.next_event, |event| {
                self.queue.push_stream(Stream::Event(Cow::Borrowed(event)))
            });
        }
    }

    /// Queues new records while there is room. Those that find none stay in their rings, where they may be overwritten
    /// before there is: the reader of the stream sees that by the numbers.
    fn pump_log(&mut self) {
        while self.queue.has_room()
            && let Some(record) = self.log.next()
        {
            self.queue.push_stream(Stream::Log(to_wire(&record)));
        }
    }
}

impl Queue {
    /// Returns whether a stream's frame, however long, fits beside what is kept free for responses.
    fn has_room(&self) -> bool {
        self.waiting.len() + MAX_FRAME_BYTES + RESPONSE_BYTES <= QUEUE_BYTES
    }

    /// Queues a stream's frame; `false` if it has to wait.
    fn push_stream(&mut self, stream: Stream<'_>) -> bool {
        // A record too long for any frame is passed over: it would keep all that come after it.
        self.has_room() && {
            let _ = self.push(&Frame::Stream(stream));
            true
        }
    }

    /// Sends all that waits with the patience of last words; whether it went out.
    fn send_all(&mut self, uart: &mut Uart) -> bool {
        let sent = uart.send(self.waiting.make_contiguous(), Patience::LAST_WORDS);
        self.waiting.drain(..sent);
        self.waiting.is_empty()
    }

    /// Queues a frame; one that finds no room is dropped: its reader has long stopped reading.
    fn push(&mut self, frame: &Frame<'_>) -> Result<(), EncodeError> {
        let bytes = encode(frame, &mut self.buffer[..])?;
        if self.waiting.len() + bytes.len() <= QUEUE_BYTES {
            self.waiting.extend(bytes);
        }
        Ok(())
    }

    fn flush(&mut self, sink: &mut dyn Sink) {
        // Output that no client will ever take is not worth keeping.
        if !sink.is_there() {
            self.waiting.clear();
        }
        while !self.waiting.is_empty() {
            let taken = sink.offer(self.waiting.as_slices().0);
            if taken == 0 {
                break;
            }
            self.waiting.drain(..taken);
        }
    }
}

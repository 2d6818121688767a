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

use endstate::last_words::{Outlet, send_last_words};
use uart::{Interrupts, Patience};
use wire::{
    EncodeError, Frame, MAX_CONSOLE_BYTES, MAX_FRAME_BYTES, Refusal, RefusalCode, Response, Stream, Subscription,
    encode,
};

use crate::arch::serial::Uart;
use crate::arch::{cpu, timer};
use crate::guests::console::{ControlEnds, RECHECK_US};
use crate::guests::events;
use crate::guests::slots::GUESTS;
use crate::kernel::console::log::{self, Follower, to_wire};
use crate::kernel::inherited::ChannelState;

/// Console output kept while no client listens; the rest of the queue is room for what comes before the next turn.
const KEPT_CONSOLE_BYTES: usize = 8 * 1024;
/// Bytes that wait for the UART.
const QUEUE_BYTES: usize = 64 * 1024;
/// Of these, kept free for responses.
const RESPONSE_BYTES: usize = 4 * MAX_FRAME_BYTES;

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
    /// The time at which to check for guests' output although no CPU has reported any.
    check_again: Option<u64>,
}

/// Encoded frames on their way to the UART.
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
        let ChannelState { subscription, log_since, next_event, .. } = *channel_state;
        log::set_followed(subscription.log);
        let is_asked = subscription != Subscription::default();
        let (log, consoles_of) = (Follower::since(log_since), Vec::new());
        Self { subscription, consoles_of, is_asked, log, next_event, queue, check_again: None }
    }

    /// Returns the channel's state, for the next image.
    pub fn channel_state(&self, request: Option<u32>) -> ChannelState {
        let log_since = self.log.ticks().saturating_add(1);
        ChannelState { request, subscription: self.subscription, log_since, next_event: self.next_event, line: None }
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
        log::set_followed(subscription.log);
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

    /// Queues what is new since the last turn, and gives the UART what it takes.
    pub fn pump(&mut self, uart: &mut Uart) {
        self.queue.flush(uart);
        let now = cpu::tsc();
        self.check_again = match self.pump_consoles() {
            true => Some(now + timer::us_to_ticks(RECHECK_US)),
            false => self.check_again.filter(|at| *at > now),
        };
        self.pump_events();
        if self.subscription.log {
            self.pump_log();
        }
        self.queue.flush(uart);
        self.watch(uart);
    }

    /// See [`RECHECK_US`].
    pub fn alarm(&self) -> Option<u64> {
        self.check_again
    }

    /// Sends all that waits, and waits until it has left the machine, each for a bounded time: the host is about to
    /// end. Allocates nothing, and waits for no lock for ever.
    pub fn drain(&mut self, uart: &mut Uart) {
        let asked = self.subscription;
        send_last_words(&mut LastWords { outgoing: self, uart });
        self.subscription = asked;
    }

    fn pump_events(&mut self) {
        if self.subscription.events {
            self.next_event = events::visit_from(self.next_event, |event| {
                self.queue.push_stream(Stream::Event(Cow::Borrowed(event)))
            });
        }
    }

    /// The UART interrupts when it has room again, for as long as something waits for it.
    fn watch(&mut self, uart: &mut Uart) {
        let waits = !self.queue.waiting.is_empty();
        uart.watch(if waits { Interrupts::all() } else { Interrupts::RECEIVED });
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

    /// Queues guests' output for the subscriber. Without a subscriber the newest is kept for the next one. Returns
    /// whether there was any, or may be.
    fn pump_consoles(&mut self) -> bool {
        let mut was_any = false;
        for guest in GUESTS.all() {
            let Some(mut ends) = guest.free_control_ends() else {
                was_any = true;
                continue;
            };
            let is_chosen = self.consoles_of.is_empty() || self.consoles_of.contains(&guest.config.name);
            if !self.subscription.consoles || !is_chosen {
                while ends.waiting() > KEPT_CONSOLE_BYTES {
                    ends.next_byte();
                }
                continue;
            }
            let mut chunk = [0; MAX_CONSOLE_BYTES];
            while self.queue.has_room() {
                let count = take(&mut ends, &mut chunk);
                if count == 0 {
                    break;
                }
                was_any = true;
                let name = Cow::Borrowed(guest.config.name.as_str());
                self.queue.push_stream(Stream::Console { name, bytes: Cow::Borrowed(&chunk[..count]) });
            }
        }
        was_any
    }
}

/// The channel as the host's end uses it.
struct LastWords<'a> {
    outgoing: &'a mut Outgoing,
    uart: &'a mut Uart,
}

impl Outlet for LastWords<'_> {
    fn has_subscriber(&self) -> bool {
        self.outgoing.is_asked
    }

    fn open_streams(&mut self) {
        (self.outgoing.subscription.events, self.outgoing.subscription.consoles) = (true, true);
    }

    fn retry(&mut self) {
        self.uart.retry();
    }

    fn gather(&mut self) {
        self.outgoing.pump_consoles();
        self.outgoing.pump_events();
        if self.outgoing.subscription.log {
            self.outgoing.pump_log();
        }
    }

    fn is_empty(&self) -> bool {
        self.outgoing.queue.waiting.is_empty()
    }

    fn send(&mut self) -> bool {
        self.outgoing.queue.send_all(self.uart)
    }

    fn wait_until_sent(&mut self) {
        self.uart.drain(Patience::LAST_WORDS);
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

    fn flush(&mut self, uart: &mut Uart) {
        // Output that no client will ever take is not worth keeping.
        if uart.found().is_none() {
            self.waiting.clear();
        }
        while !self.waiting.is_empty() {
            let taken = uart.offer(self.waiting.as_slices().0);
            if taken == 0 {
                break;
            }
            self.waiting.drain(..taken);
            cpu::take_pending_interrupts();
        }
    }
}

fn take(from: &mut ControlEnds, into: &mut [u8]) -> usize {
    let mut count = 0;
    while count < into.len()
        && let Some(byte) = from.next_byte()
    {
        into[count] = byte;
        count += 1;
    }
    count
}

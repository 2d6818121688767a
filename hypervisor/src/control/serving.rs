// SPDX-License-Identifier: MIT OR Apache-2.0
//! All lines of the channel: COM2, and those of clients in guests.

use alloc::string::ToString;

use session::Grant;
use wire::{FrameError, Refusal, RefusalCode, ReplyBody, Request, Response};

use super::guest_lines::{Asked, GuestLine, LineId};
use super::outgoing::Outgoing;
use super::{Control, consoles};
use crate::arch::percpu::{BOOT_CPU, wake};
use crate::arch::{cpu, timer};
use crate::guests::console::RECHECK_US;
use crate::guests::sockets::services;
use crate::kernel::console::log;

/// Bytes that are taken from one client in a guest before others have their turn.
const BATCH_BYTES: usize = 4096;
/// While a file is being sent: how long nothing may come before the turn ends, and how long a turn may be.
const QUIET_US: u64 = 50;
const TURN_US: u64 = 500;
/// After the first few, what is no request is refused once in so long.
const REFUSAL_INTERVAL_US: u64 = 100_000;

impl Control {
    /// Returns what has come over COM2. While a file is being sent over a line that does not keep a wire's time, a
    /// moment is waited for more: each turn of the loop costs more than what a FIFO holds.
    pub(super) fn receive(&mut self, bytes: &mut [u8]) -> usize {
        let mut count = self.uart.receive(bytes);
        if self.is_line_broken() {
            return 0;
        }
        let is_fast = self.uart.found().is_some_and(|found| !found.is_paced);
        let began = cpu::tsc();
        let mut quiet_since = began;
        while count > 0 && is_fast && self.images.is_receiving() && count < bytes.len() {
            let now = cpu::tsc();
            let (quiet, turn) = (now.wrapping_sub(quiet_since), now.wrapping_sub(began));
            if quiet > timer::us_to_ticks(QUIET_US) || turn > timer::us_to_ticks(TURN_US) {
                break;
            }
            cpu::pause();
            let more = self.uart.receive(&mut bytes[count..]);
            if more > 0 {
                quiet_since = cpu::tsc();
            }
            count += more;
        }
        count
    }

    /// Takes what clients in guests have sent.
    pub(super) fn receive_from_guests(&mut self) {
        if self.lines.is_empty() {
            return;
        }
        services::take_news();
        if self.lines.iter_mut().fold(false, |has_changed, line| line.meet() | has_changed) {
            self.note_followers();
        }
        let mut bytes = [0; BATCH_BYTES];
        for number in 0..self.lines.len() {
            let count = self.lines[number].receive(&mut bytes);
            let mut rest = &bytes[..count];
            while let Some(result) = self.lines[number].push(&mut rest) {
                self.take_frame(LineId::Guest(number as u8), result);
            }
            if count == BATCH_BYTES {
                wake(BOOT_CPU);
            }
        }
    }

    /// Takes a frame that has come over a line.
    pub(super) fn take_frame(&mut self, line: LineId, result: Result<Option<Request>, FrameError>) {
        match result {
            Ok(Some(request)) => self.take(line, request),
            Ok(None) => self.refuse(line, "a host takes requests only".to_string()),
            Err(FrameError::NewRequest { id }) => self.respond(Asked { line, id }, Err(unknown_request())),
            Err(error) => self.refuse(line, error.to_string()),
        }
    }

    /// Queues what is new for every client, and sends what their lines take.
    pub(super) fn send(&mut self) {
        if !self.is_line_broken() {
            self.send_over_com2();
        }
        self.lines.iter_mut().for_each(GuestLine::pump);
    }

    /// The same for COM2, and guests' output for all: COM2's client does not lose any.
    fn send_over_com2(&mut self) {
        let mut outgoing = self.outgoing.lock();
        outgoing.flush(&mut self.uart);
        let now = cpu::tsc();
        self.check_consoles = match consoles::pump(&mut outgoing, &mut self.lines) {
            true => Some(now + timer::us_to_ticks(RECHECK_US)),
            false => self.check_consoles.filter(|at| *at > now),
        };
        outgoing.pump(&mut self.uart);
    }

    /// While an update is ready: what clients in guests send waits, as soon as nothing is on its way. Returns whether
    /// that holds for all of them.
    pub(super) fn hold_guests(&mut self) -> bool {
        if self.updates.is_ready() {
            return self.lines.iter_mut().all(GuestLine::hold);
        }
        self.lines.iter().for_each(GuestLine::release);
        true
    }

    pub(super) fn respond(&mut self, asked: Asked, result: Result<ReplyBody, Refusal>) {
        let response = Response { id: asked.id, result };
        self.with_outgoing(asked.line, |outgoing| outgoing.respond(response));
    }

    /// Works with what is sent over a line, if its client is still there.
    pub(super) fn with_outgoing(&mut self, line: LineId, act: impl FnOnce(&mut Outgoing)) {
        match line {
            LineId::Com2 => act(&mut self.outgoing.lock()),
            LineId::Guest(number) => {
                if let Some(outgoing) = self.lines.get_mut(usize::from(number)).and_then(GuestLine::outgoing) {
                    act(outgoing);
                }
            }
        }
    }

    /// Notes whether a client follows the log.
    pub(super) fn note_followers(&mut self) {
        let mut lines = self.lines.iter_mut().filter_map(GuestLine::outgoing);
        let is_followed = lines.any(|outgoing| outgoing.follows_log()) || self.outgoing.lock().follows_log();
        log::set_followed(is_followed);
    }

    /// The requests that clients over this line may send; `None`: it is no guest's.
    pub(super) fn grant_of(&self, line: LineId) -> Option<&'static Grant> {
        match line {
            LineId::Com2 => None,
            LineId::Guest(number) => self.lines.get(usize::from(number)).map(GuestLine::grant),
        }
    }

    /// Returns how many refusals were left out on this line, if one may be sent now.
    pub(super) fn take_refusal(&mut self, line: LineId) -> Option<u32> {
        let (now, interval) = (cpu::tsc(), timer::us_to_ticks(REFUSAL_INTERVAL_US));
        match line {
            LineId::Com2 => self.refusals.take(now, interval),
            LineId::Guest(number) => self.lines.get_mut(usize::from(number))?.take_refusal(now, interval),
        }
    }
}

fn unknown_request() -> Refusal {
    let reason = "the host does not know the request: it is of an older release".to_string();
    Refusal { code: RefusalCode::Protocol, reason, hint: "update the host, or use its own tool".to_string() }
}

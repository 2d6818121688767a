// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sending: one path for both policies.

use crate::hardware::Hardware;
use crate::health::Health;
use crate::policy::{Counters, Patience, Policy};
use crate::probe::{Absent, Found, Peer, probe};
use crate::rate::Rate;
use crate::register::{FLOATING, Identification, Interrupts, LineStatus, Register};
use crate::wait::Wait;

/// Space that every receiver that interrupts has at least ([`crate::FifoControl::TRIGGER_14`]; with 64 bytes it is 56).
const TRIGGER_BYTES: usize = 14;
/// Calls without a read of the status after which a clock that stands still is not believed any longer.
const MOST_CALLS_UNSEEN: u32 = 1 << 20;

/// One UART.
#[derive(Debug)]
pub struct Uart<H> {
    hardware: H,
    found: Option<Found>,
    policy: Policy,
    health: Health,
    /// Bytes that may be written without another read of the status.
    credit: usize,
    /// Earliest time at which the transmitter can be empty.
    empty_at_ns: Option<u64>,
    /// Calls since the last read of the status.
    unseen: u32,
    /// The wait for an empty transmitter, since the first read that found it busy.
    wait: Option<Wait>,
    interrupts: Interrupts,
    counters: Counters,
}

impl<H: Hardware> Uart<H> {
    /// A UART that has not been probed yet.
    pub const fn new(hardware: H) -> Self {
        Self {
            hardware,
            found: None,
            policy: Policy::Fifo,
            health: Health::Absent,
            credit: 0,
            empty_at_ns: None,
            unseen: 0,
            wait: None,
            interrupts: Interrupts::empty(),
            counters: Counters { bytes: 0, status_reads: 0, fills: 0, drops: 0, refused_bytes: 0 },
        }
    }

    /// Searches for it and sets it up: 8N1, FIFOs on, no interrupts.
    pub fn start(&mut self, rate: Rate, policy: Policy, peer: Peer) -> Result<Found, Absent> {
        let found = probe(&mut self.hardware, rate, peer);
        self.found = found.ok();
        self.policy = policy;
        self.health = if found.is_ok() { Health::Alive } else { Health::Absent };
        (self.credit, self.empty_at_ns, self.wait) = (0, None, None);
        (self.interrupts, self.counters) = (Interrupts::empty(), Counters::default());
        found
    }

    /// A second handle on a UART that was set up before: nothing is probed or changed. For the end of the host, when
    /// the CPU that holds the first handle may have stopped.
    pub fn adopt(hardware: H, found: Found, policy: Policy) -> Self {
        Self { found: Some(found), policy, health: Health::Alive, ..Self::new(hardware) }
    }

    /// Returns the UART that was found, if there is one.
    pub fn found(&self) -> Option<Found> {
        self.found
    }

    /// Returns whether it takes bytes, as far as is known: there, and not dropped.
    pub fn is_alive(&self) -> bool {
        self.health == Health::Alive
    }

    /// Returns the counters of its events.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns the access to its registers.
    pub fn hardware(&mut self) -> &mut H {
        &mut self.hardware
    }

    /// Writes the bytes that it takes now, at most those that follow one read of the status, without waiting. Returns
    /// how many.
    pub fn offer(&mut self, bytes: &[u8]) -> usize {
        self.offer_within(bytes, Patience::USUAL)
    }

    /// Sends `bytes`, waiting for room at most as long as `patience` states. Returns how many it took: fewer than all
    /// only if it is absent or dropped; those are counted.
    pub fn send(&mut self, bytes: &[u8], patience: Patience) -> usize {
        let mut sent = 0;
        while sent < bytes.len() {
            let taken = self.offer_within(&bytes[sent..], patience);
            sent += taken;
            if !self.is_alive() {
                break;
            }
            if taken == 0 {
                self.hardware.pause();
            }
        }
        self.counters.refused_bytes += (bytes.len() - sent) as u64;
        sent
    }

    /// Waits at most as long as `patience` states until the last byte has left.
    pub fn drain(&mut self, patience: Patience) {
        let Some(found) = self.found.filter(|_| self.is_alive()) else { return };
        let limit_ns = found.rate.byte_ns() * found.depth.bytes() as u64 * u64::from(patience.0);
        Wait::until(&mut self.hardware, limit_ns, |hardware| {
            LineStatus::from_bits_retain(hardware.read(Register::LineStatus)).contains(LineStatus::LINE_IDLE)
        });
    }

    /// Reads the bytes that have arrived, at most `into`; returns how many.
    pub fn receive(&mut self, into: &mut [u8]) -> usize {
        if self.found.is_none() {
            return 0;
        }
        let (mut count, mut may_burst) = (0, true);
        while count < into.len() {
            let Some(status) = self.read_status() else { break };
            if status.contains(LineStatus::TRANSMITTER_EMPTY) {
                self.refill();
            }
            if !status.contains(LineStatus::DATA_READY) {
                break;
            }
            // As many as the receiver interrupts at are there for certain once it wants to; else each is searched for.
            may_burst = may_burst && self.has_trigger() && into.len() - count >= TRIGGER_BYTES;
            let next = count + if may_burst { TRIGGER_BYTES } else { 1 };
            self.hardware.read_burst(Register::Data, &mut into[count..next]);
            count = next;
        }
        count
    }

    /// Returns whether the receiver has as many bytes as it interrupts at. Where its interrupt is disabled it does not
    /// report this.
    fn has_trigger(&mut self) -> bool {
        let cause = self.hardware.read(Register::Fifo) & Identification::CAUSE.bits();
        cause == Identification::RECEIVED.bits()
    }

    /// Enables these interrupts, and disables all others.
    pub fn watch(&mut self, interrupts: Interrupts) {
        if self.found.is_some() && self.interrupts != interrupts {
            self.hardware.write(Register::Interrupts, interrupts.bits());
            self.interrupts = interrupts;
        }
    }

    /// Notes that it has interrupted: if it was dropped, it is checked again.
    pub fn interrupted(&mut self) {
        self.health.poll_soon();
        self.empty_at_ns = None;
    }

    /// Sends again to a UART as to one that works, dropped or not: last words follow, which are not given up because it
    /// stood still a moment ago.
    pub fn retry(&mut self) {
        if self.health != Health::Absent {
            (self.health, self.wait, self.empty_at_ns) = (Health::Alive, None, None);
        }
    }

    fn offer_within(&mut self, bytes: &[u8], patience: Patience) -> usize {
        if bytes.is_empty() || (self.credit == 0 && !self.is_empty_now(patience)) {
            return 0;
        }
        let count = bytes.len().min(self.credit);
        let began_ns = self.empty_at_ns;
        self.hardware.write_burst(Register::Data, &bytes[..count]);
        self.credit -= count;
        self.counters.bytes += count as u64;
        self.empty_at_ns = self.when_empty(began_ns, count);
        count
    }

    /// Returns the earliest time at which the transmitter can be empty. The last byte of a fill reaches the shift
    /// register when all before it have left; until then a read of the status is useless.
    fn when_empty(&mut self, before_ns: Option<u64>, count: usize) -> Option<u64> {
        let found = self.found.filter(|found| found.is_paced)?;
        let now_ns = self.hardware.now_ns()?;
        let wire_ns = found.rate.byte_ns() * count as u64;
        Some(match before_ns.filter(|before| *before > now_ns) {
            Some(before) => before + wire_ns,
            None => now_ns + wire_ns.saturating_sub(found.rate.byte_ns() * 3 / 2),
        })
    }

    /// Returns whether the transmitter is empty: reads the status, unless it cannot be empty yet. Gives credit if so;
    /// drops the UART if it has not been empty for too long.
    fn is_empty_now(&mut self, patience: Patience) -> bool {
        if !self.is_sampled() {
            return false;
        }
        match self.read_status() {
            Some(status) if status.contains(LineStatus::TRANSMITTER_EMPTY) => {
                self.refill();
                true
            }
            Some(_) if self.health == Health::Alive => {
                self.note_busy(patience);
                false
            }
            _ => {
                self.drop_it();
                false
            }
        }
    }

    /// Returns whether it is time to read the status.
    fn is_sampled(&mut self) -> bool {
        match (self.health, self.empty_at_ns) {
            (Health::Absent, _) => false,
            (Health::Dropped { .. }, _) => self.health.may_retry(&mut self.hardware),
            (Health::Alive, None) => true,
            (Health::Alive, Some(empty_at)) => {
                self.unseen += 1;
                self.unseen > MOST_CALLS_UNSEEN || self.hardware.now_ns().is_none_or(|now| now >= empty_at)
            }
        }
    }

    /// Notes that the transmitter was found empty: it works, and takes a fill.
    fn refill(&mut self) {
        self.counters.fills += 1;
        self.health = Health::Alive;
        self.wait = None;
        self.empty_at_ns = None;
        let depth = self.found.map_or(1, |found| found.depth.bytes());
        self.credit = if self.policy == Policy::Fifo { depth } else { 1 };
    }

    fn note_busy(&mut self, patience: Patience) {
        let Some(found) = self.found else { return };
        let fifo_ns = found.rate.byte_ns() * found.depth.bytes() as u64;
        let mut wait = self.wait.unwrap_or_else(|| Wait::begin(&mut self.hardware));
        let is_over = wait.is_over(&mut self.hardware, fifo_ns * u64::from(patience.0));
        self.wait = Some(wait);
        if is_over {
            self.drop_it();
        }
    }

    fn drop_it(&mut self) {
        self.counters.drops += u64::from(self.health == Health::Alive);
        self.health = Health::dropped(&mut self.hardware);
        (self.credit, self.wait, self.empty_at_ns) = (0, None, None);
    }

    /// Reads the line's status. Returns `None` if no UART answers any more: where there is one, the upper bits of the
    /// interrupts register are always zero.
    fn read_status(&mut self) -> Option<LineStatus> {
        self.counters.status_reads += 1;
        self.unseen = 0;
        let status = self.hardware.read(Register::LineStatus);
        let is_gone = status == FLOATING && self.hardware.read(Register::Interrupts) == FLOATING;
        (!is_gone).then(|| LineStatus::from_bits_retain(status))
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine that restarts: the leader leaves the old image while simulated CPUs run guests that write.

use std::cell::{Cell, RefCell};

use update::platform::{Clock, Cpu, Platform, Problem};
use update::restart::{Act, Departure};
use update::trial::Stamp;

/// Milliseconds in which CPUs must park, and after which they are interrupted again.
pub const LIMIT_MS: u64 = 5_000;
pub const REMINDER_MS: u64 = 1;

/// A CPU that is not the leader.
#[derive(Clone, Debug, Default)]
pub struct Other {
    pub is_interrupted: bool,
    /// Number of interrupts that are lost.
    pub lost: u32,
    /// It leaves its guest only then.
    pub busy_until: u64,
    pub is_parked: bool,
    pub is_reset: bool,
}

pub struct World {
    pub now: Cell<u64>,
    tick_ms: u64,
    pub others: RefCell<Vec<Other>>,
    pub interrupts: Cell<u32>,
    is_parking: bool,
    /// Bytes that guests have written, and of these the ones that were sent; lines of the log likewise.
    pub written: u64,
    sent: u64,
    logged: u64,
    printed: u64,
    pub acts: Vec<Act>,
    /// Output is sent as an earlier image did: when the others are ordered to park, and not once they have.
    pub sends_early: bool,
    /// The image's slot is not locked.
    pub is_checked_again: bool,
}

pub fn cpu(at: usize) -> Cpu {
    Cpu { index: at as u32 + 1, apic_id: at as u32 + 101 }
}

impl Clock for World {
    fn now(&self) -> u64 {
        self.now.get()
    }

    fn ticks(&self, us: u64) -> u64 {
        us / 1_000 / self.tick_ms
    }
}

impl Platform for World {
    fn interrupt(&self, cpu: Cpu) {
        assert_eq!(cpu.apic_id, cpu.index + 100);
        self.interrupts.set(self.interrupts.get() + 1);
        let other = &mut self.others.borrow_mut()[cpu.index as usize - 1];
        match other.lost {
            0 => other.is_interrupted = true,
            lost => other.lost = lost - 1,
        }
    }

    fn send_nmi(&self, _: Cpu) {
        panic!("no CPU is fetched");
    }

    fn stamp(&self, _: Stamp) {}

    fn note(&self, problem: Problem) {
        panic!("{problem:?}");
    }
}

impl World {
    /// A tick is a millisecond.
    pub fn new(others: Vec<Other>) -> Self {
        Self::with_ticks_of(1, others)
    }

    pub fn with_ticks_of(tick_ms: u64, others: Vec<Other>) -> Self {
        Self {
            now: Cell::default(),
            tick_ms,
            others: others.into(),
            interrupts: Cell::default(),
            is_parking: false,
            written: 0,
            sent: 0,
            logged: 0,
            printed: 0,
            acts: Vec::new(),
            sends_early: false,
            is_checked_again: true,
        }
    }

    pub fn cpus(&self) -> usize {
        self.others.borrow().len()
    }

    pub fn departure(&self) -> Departure {
        Departure::begin(self.is_checked_again)
    }

    fn limit(&self) -> u64 {
        LIMIT_MS / self.tick_ms
    }

    /// Distinguishes states with different futures: the amount written matters only as far as it is not sent.
    pub fn fingerprint(&self, departure: &Departure) -> String {
        let (unsent, unprinted) = (self.written != self.sent, self.logged != self.printed);
        let acts = self.acts.last();
        format!("{:?} {:?} {unsent} {unprinted} {acts:?} {departure:?}", self.now, self.others)
    }

    /// The CPU parks if it may, or its guest writes.
    pub fn step(&mut self, at: usize) {
        let now = self.now.get();
        let other = &mut self.others.get_mut()[at];
        if other.is_parked || other.is_reset {
            return;
        }
        if self.is_parking && other.is_interrupted && now >= other.busy_until {
            other.is_parked = true;
            return;
        }
        self.written += 1;
        self.logged += 1;
    }

    pub fn lead(&mut self, departure: &mut Departure) -> Act {
        let others = self.others.borrow().len();
        let is_parked = |cpu: Cpu| self.others.borrow()[cpu.index as usize - 1].is_parked;
        let act = departure.next(self, (0..others).map(cpu), is_parked);
        match act {
            Act::PrintLog | Act::EndLog => self.printed = self.logged,
            Act::Park => {
                self.is_parking = true;
                if self.sends_early {
                    self.sent = self.written;
                }
            }
            Act::Lose(cpu) => {
                let other = &mut self.others.get_mut()[cpu.index as usize - 1];
                assert!(!other.is_parked && !other.is_reset && self.now.get() >= LIMIT_MS / self.tick_ms);
                other.is_reset = true;
            }
            Act::SendOutput => {
                if !self.sends_early {
                    self.sent = self.written;
                }
                self.logged += 1;
            }
            Act::CheckImage => self.logged += 1,
            _ => {}
        }
        if act != Act::Pause {
            self.acts.push(act);
        }
        act
    }

    pub fn check_end(&mut self) {
        assert_eq!(self.sent, self.written, "output is lost");
        assert_eq!(self.printed, self.logged, "the log's end is lost");
        assert!(self.others.get_mut().iter().all(|other| other.is_parked != other.is_reset));
        let order: Vec<_> = self.acts.iter().filter(|act| !matches!(act, Act::Lose(_))).copied().collect();
        let all = [
            Act::PrintLog,
            Act::StopGuests,
            Act::Park,
            Act::ResetAbsent,
            Act::SendOutput,
            Act::CheckImage,
            Act::EndLog,
            Act::WriteRecord,
            Act::Leave,
        ];
        let all = all.into_iter().filter(|act| self.is_checked_again || *act != Act::CheckImage);
        assert_eq!(order, all.collect::<Vec<_>>());
    }

    /// Steps each CPU in turn, then a tick, until the leader has left; returns when.
    pub fn finish(&mut self) -> u64 {
        self.finish_from(&mut self.departure())
    }

    pub fn finish_from(&mut self, departure: &mut Departure) -> u64 {
        for _ in 0..self.limit() + 1_000 {
            for _ in 0..6 {
                (0..self.others.get_mut().len()).for_each(|at| self.step(at));
                if self.lead(departure) == Act::Leave {
                    self.check_end();
                    return self.now.get();
                }
            }
            self.now.set(self.now.get() + 1);
        }
        panic!("it does not end: {:?}", self.acts);
    }
}

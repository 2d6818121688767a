// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's counters: `soft`, or the counters of its CPUs. One type for both, so that the code above exists once.

use crate::amd::{Amd, Description, Side};
use crate::soft::Soft;
use crate::vendor::Vendor;
use crate::{Backend, Counter, CounterSet, Event, Msrs, Width};

/// The operator's choice of the counters for guests' events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Choice {
    /// The guest's own time.
    #[default]
    Soft,
    /// The CPU's counters, where they can be used.
    Hardware,
}

/// There is no such choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownChoice;

impl core::str::FromStr for Choice {
    type Err = UnknownChoice;

    fn from_str(name: &str) -> Result<Self, UnknownChoice> {
        match name {
            "soft" => Ok(Self::Soft),
            "hardware" => Ok(Self::Hardware),
            _ => Err(UnknownChoice),
        }
    }
}

/// The counters' registers, of the CPU on which it is called.
#[derive(Clone, Copy, Debug)]
pub struct Registers {
    /// RDMSR.
    pub read: fn(u32) -> u64,
    /// WRMSR.
    pub write: fn(u32, u64),
}

impl Msrs for Registers {
    fn read(&mut self, number: u32) -> u64 {
        (self.read)(number)
    }

    fn write(&mut self, number: u32, value: u64) {
        (self.write)(number, value);
    }
}

/// Source of a guest's counters.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// No source: see [`crate::soft`].
    Soft,
    /// From AMD's CPUs, all of which have these.
    Amd(Registers, Description),
}

/// Counters from either source, for one guest's CPU.
#[derive(Clone, Debug)]
pub enum MachineCounters {
    /// The guest's time.
    Soft(Soft),
    /// The CPU's counters, which count only while the guest runs.
    Amd(Amd<Registers>),
}

impl MachineCounters {
    /// None in use.
    pub const fn new(source: Source) -> Self {
        match source {
            Source::Soft => Self::Soft(Soft::new(0)),
            Source::Amd(registers, description) => Self::Amd(Amd::new(registers, description, Side::Guest)),
        }
    }

    /// Others of the same source, none in use.
    pub const fn others(&self) -> Self {
        match self {
            Self::Soft(_) => Self::Soft(Soft::new(0)),
            Self::Amd(amd) => Self::Amd(amd.others()),
        }
    }
}

/// The path of `soft` comes first and has no call in it.
impl Backend for MachineCounters {
    #[inline(always)]
    fn is_private(&self) -> bool {
        matches!(self, Self::Soft(_))
    }

    fn vendor(&self) -> Option<Vendor> {
        match self {
            Self::Soft(soft) => soft.vendor(),
            Self::Amd(amd) => amd.vendor(),
        }
    }

    fn counters(&self) -> CounterSet {
        match self {
            Self::Soft(soft) => soft.counters(),
            Self::Amd(amd) => amd.counters(),
        }
    }

    #[inline(always)]
    fn width(&self) -> Width {
        Width::USUAL
    }

    #[inline(always)]
    fn able(&self, event: &Event) -> CounterSet {
        match self {
            Self::Soft(soft) => soft.able(event),
            Self::Amd(amd) => amd.able(event),
        }
    }

    #[inline(always)]
    fn program(&mut self, counter: Counter, event: &Event, value: u64) {
        match self {
            Self::Soft(soft) => soft.program(counter, event, value),
            Self::Amd(amd) => amd.program(counter, event, value),
        }
    }

    #[inline(always)]
    fn clear(&mut self, counter: Counter) {
        match self {
            Self::Soft(soft) => soft.clear(counter),
            Self::Amd(amd) => amd.clear(counter),
        }
    }

    #[inline(always)]
    fn start(&mut self, counters: CounterSet) {
        match self {
            Self::Soft(soft) => soft.start(counters),
            Self::Amd(amd) => amd.start(counters),
        }
    }

    #[inline(always)]
    fn stop(&mut self, counters: CounterSet) {
        match self {
            Self::Soft(soft) => soft.stop(counters),
            Self::Amd(amd) => amd.stop(counters),
        }
    }

    #[inline(always)]
    fn read(&mut self, counter: Counter) -> u64 {
        match self {
            Self::Soft(soft) => soft.read(counter),
            Self::Amd(amd) => amd.read(counter),
        }
    }

    #[inline(always)]
    fn write(&mut self, counter: Counter, value: u64) {
        match self {
            Self::Soft(soft) => soft.write(counter, value),
            Self::Amd(amd) => amd.write(counter, value),
        }
    }

    #[inline(always)]
    fn take_overflows(&mut self, of: CounterSet) -> CounterSet {
        match self {
            Self::Soft(soft) => soft.take_overflows(of),
            Self::Amd(amd) => amd.take_overflows(of),
        }
    }

    #[inline(always)]
    fn run_until(&mut self, ticks: u64) {
        if let Self::Soft(soft) = self {
            soft.run_until(ticks);
        }
    }

    #[inline(always)]
    fn overflows_until(&mut self, ticks: u64, of: CounterSet) -> CounterSet {
        match self {
            Self::Soft(soft) => soft.overflows_until(ticks, of),
            Self::Amd(amd) => amd.take_overflows(of),
        }
    }

    #[inline(always)]
    fn ticks_to_overflow(&self) -> Option<u64> {
        match self {
            Self::Soft(soft) => soft.ticks_to_overflow(),
            Self::Amd(_) => None,
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events, in no vendor's terms where both have them.

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Cycles of the CPU while it is not halted.
    Cycles,
    /// The same at the rate of the time stamp counter, whatever the CPU's is.
    ReferenceCycles,
    /// Instructions retired.
    Instructions,
    /// Something that only one vendor's CPUs know, by its number there.
    Vendor {
        /// Event select, up to 12 bits.
        select: u16,
        /// Unit mask.
        unit: u8,
    },
}

/// Modes of the CPU in which is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes {
    /// Privilege levels 1 to 3.
    pub user: bool,
    /// Privilege level 0.
    pub kernel: bool,
}

impl Modes {
    /// Always.
    pub const ALL: Self = Self { user: true, kernel: true };

    /// From the two bits OS (1) and USR (0) that AMD's and Intel's selects have at bit 16, in this order.
    pub const fn from_bits(os_usr: u64) -> Self {
        Self { user: os_usr & 1 != 0, kernel: os_usr & 2 != 0 }
    }

    /// The two bits: USR, and OS above it.
    pub const fn bits(self) -> u64 {
        self.user as u64 | (self.kernel as u64) << 1
    }

    /// Never.
    pub const fn is_empty(self) -> bool {
        !self.user && !self.kernel
    }
}

/// The part of each occurrence that is counted: all of it, unless stated otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Shape {
    /// Only where it begins.
    pub edge: bool,
    /// With a threshold: cycles in which it happens less often.
    pub invert: bool,
    /// Cycles in which it happens at least so often; 0: all.
    pub threshold: u8,
}

/// An event: what is counted, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its kind.
    pub what: What,
    /// In which modes.
    pub modes: Modes,
    /// Its filter.
    pub shape: Shape,
}

impl Event {
    /// All of it, in all modes.
    pub const fn of(what: What) -> Self {
        Self { what, modes: Modes::ALL, shape: Shape { edge: false, invert: false, threshold: 0 } }
    }
}

/// Event selects as both vendors lay them out (Intel SDM vol. 3, figure 20-6; AMD APM vol. 2, section 13.2.1).
pub mod select {
    use super::{Event, Modes, Shape, What};

    /// Bits 0–7, and with AMD 32–35 above them: the event.
    pub const EVENT: u64 = 0xff;
    /// Position of the mode bits.
    pub const MODES_SHIFT: u32 = 16;
    /// Only where it begins.
    pub const EDGE: u64 = 1 << 18;
    /// An overflow interrupts.
    pub const INTERRUPT: u64 = 1 << 20;
    /// The counter counts.
    pub const ENABLE: u64 = 1 << 22;
    /// The threshold counts the other way.
    pub const INVERT: u64 = 1 << 23;
    /// Position of the threshold.
    pub const THRESHOLD_SHIFT: u32 = 24;
    const UNIT_SHIFT: u32 = 8;
    const HIGH_EVENT_SHIFT: u32 = 32;

    /// The event's number and its unit mask.
    pub const fn number(value: u64) -> (u16, u8) {
        let high = (value >> HIGH_EVENT_SHIFT & 0xf) as u16;
        (high << 8 | (value & EVENT) as u16, (value >> UNIT_SHIFT) as u8)
    }

    /// The event that a select's bits ask for, where its number stands for `what`.
    pub const fn event(value: u64, what: What) -> Event {
        let shape =
            Shape { edge: value & EDGE != 0, invert: value & INVERT != 0, threshold: (value >> THRESHOLD_SHIFT) as u8 };
        Event { what, modes: Modes::from_bits(value >> MODES_SHIFT), shape }
    }

    /// The select's bits for an event of this number; without [`ENABLE`] and [`INTERRUPT`].
    pub const fn encode(event: &Event, number: u16, unit: u8) -> u64 {
        let shape = event.shape;
        (number & 0xff) as u64
            | ((number >> 8) as u64) << HIGH_EVENT_SHIFT
            | (unit as u64) << UNIT_SHIFT
            | event.modes.bits() << MODES_SHIFT
            | if shape.edge { EDGE } else { 0 }
            | if shape.invert { INVERT } else { 0 }
            | (shape.threshold as u64) << THRESHOLD_SHIFT
    }
}

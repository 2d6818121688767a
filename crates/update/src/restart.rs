// SPDX-License-Identifier: MIT OR Apache-2.0
//! The leader's way out of the old image in a warm restart: all other CPUs park first, and guests end where they are.
//!
//! ```text
//! PrintLog ─▶ StopGuests ─▶ Park ─▶ each other CPU parks, or is lost at the deadline ─▶ ResetAbsent
//!   guests run                                                                             │ no guest writes any more
//!                              Leave ◀─ WriteRecord ◀─ EndLog ◀─ CheckImage ◀─ SendOutput ◀┘
//! ```
//!
//! The image is checked here only where its slot was not locked when it was staged ([`crate::stage::Policy`]).
//!
//! Guests' output is sent last only once all other CPUs have parked: until then guests there write on. The log is
//! printed to its end after everything that may log.

use crate::platform::{Cpu, Platform};

/// Longest time in µs for CPUs to park. They do so at their next exit; but an emulator on a crowded machine may keep
/// one from running for seconds, and the full time passes only if one is dead.
const PARK_LIMIT_US: u64 = 5_000_000;
/// Interval in µs at which a CPU that has not parked is interrupted again.
const REMINDER_US: u64 = 1_000;

/// The caller's next action. There is no way back from [`Act::StopGuests`] on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Prints the log while guests run on other CPUs, so that little is left for later.
    PrintLog,
    /// Notes the time: from here on guests count as stopped.
    StopGuests,
    /// Orders all other CPUs to park; the state machine interrupts them.
    Park,
    /// Waits a moment.
    Pause,
    /// This CPU has not parked in time: sends it INIT, after which it does nothing, and reports it lost.
    Lose(Cpu),
    /// Sends INIT to CPUs that are offline.
    ResetAbsent,
    /// Sends guests' output, and records the state of the exchange with the operator.
    SendOutput,
    /// Checks the new image once more: it may have been written to since it was hashed.
    CheckImage,
    /// Prints the log to its end.
    EndLog,
    /// Writes the record for the new image.
    WriteRecord,
    /// Goes to the new image.
    Leave,
}

/// The departure's progress.
#[derive(Debug)]
pub struct Departure {
    is_checked_again: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Begun,
    LogPrinted,
    GuestsStopped,
    /// The others have been ordered to park.
    Ordered,
    /// It waits for the CPU at this place; until when; when that is interrupted again.
    Waiting {
        place: usize,
        deadline: u64,
        remind_at: u64,
    },
    Parked,
    AbsentReset,
    OutputSent,
    ImageChecked,
    LogEnded,
    RecordWritten,
}

impl Departure {
    /// Begins a departure. `is_checked_again`: the policy demands [`Act::CheckImage`].
    #[must_use]
    pub fn begin(is_checked_again: bool) -> Self {
        Self { is_checked_again, state: State::Begun }
    }

    /// Returns the next act. `others`: all other CPUs, always in the same order. Allocates nothing and waits for no
    /// lock.
    pub fn next(
        &mut self,
        platform: &impl Platform,
        others: impl Iterator<Item = Cpu>,
        is_parked: impl Fn(Cpu) -> bool,
    ) -> Act {
        let (state, act) = match self.state {
            State::Begun => (State::LogPrinted, Act::PrintLog),
            State::LogPrinted => (State::GuestsStopped, Act::StopGuests),
            State::GuestsStopped => (State::Ordered, Act::Park),
            State::Ordered => {
                others.for_each(|cpu| platform.interrupt(cpu));
                let (deadline, remind_at) = (after(PARK_LIMIT_US, platform), after(REMINDER_US, platform));
                (State::Waiting { place: 0, deadline, remind_at }, Act::Pause)
            }
            State::Waiting { place, deadline, remind_at } => {
                wait(place, deadline, remind_at, platform, others, is_parked)
            }
            State::Parked => (State::AbsentReset, Act::ResetAbsent),
            State::AbsentReset => (State::OutputSent, Act::SendOutput),
            State::OutputSent if self.is_checked_again => (State::ImageChecked, Act::CheckImage),
            State::OutputSent | State::ImageChecked => (State::LogEnded, Act::EndLog),
            State::LogEnded => (State::RecordWritten, Act::WriteRecord),
            State::RecordWritten => (State::RecordWritten, Act::Leave),
        };
        self.state = state;
        act
    }
}

fn wait(
    first: usize,
    deadline: u64,
    remind_at: u64,
    platform: &impl Platform,
    mut others: impl Iterator<Item = Cpu>,
    is_parked: impl Fn(Cpu) -> bool,
) -> (State, Act) {
    let Some((place, cpu)) = others.by_ref().enumerate().skip(first).find(|(_, cpu)| !is_parked(*cpu)) else {
        return (State::Parked, Act::Pause);
    };
    if platform.now() >= deadline {
        return (State::Waiting { place: place + 1, deadline, remind_at }, Act::Lose(cpu));
    }
    let remind_at = if platform.now() < remind_at {
        remind_at
    } else {
        platform.interrupt(cpu);
        after(REMINDER_US, platform)
    };
    (State::Waiting { place, deadline, remind_at }, Act::Pause)
}

fn after(us: u64, platform: &impl Platform) -> u64 {
    platform.now().saturating_add(platform.ticks(us))
}

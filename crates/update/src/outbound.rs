// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps of a CPU of the old image in the blackout.
//!
//! ```text
//! Begun ─LeaveGuests▶ Left ─▶ Stopped ─ all ─Save▶ Saving ─▶ Saved ─▶ Ready ─ all ─Lend▶ Away ⇄ Returned
//!                               │ rolled back                          │ rolled back            │ rolled back
//!                               └──────────────────────────────────────┴────────────────────────┴──▶ Back
//! Back ─NoteReturn▶ Home ─▶ Fetching (the first CPU that is back) ─ all ─▶ Done
//! ```
//!
//! Each wait has a limit: beyond the deadline the waiting CPU rolls back ([`Takeover::roll_back`]), and so ends the
//! waits of all others. A CPU that runs the new image then is fetched by NMIs. Which of commit and roll-back comes
//! first is decided by one word; a CPU acts on its value, never on the CPU's own attempt.

use crate::blackout::{Blackout, NMI_INTERVAL_US};
use crate::platform::{Platform, Problem};
use crate::takeover::{Takeover, Verdict, Way};
use crate::trial::Stamp;

/// Interval in µs at which CPUs that have not arrived are interrupted again. QEMU's emulator can lose an interrupt:
/// VMRUN with a virtual interrupt changes the CPU's pending requests there without the lock under which other CPUs add
/// to them.
const REMINDER_US: u64 = 1_000;
/// NMIs after which a CPU is lost, and the host with it: its guests can neither go on nor be left.
const MOST_NMIS: u32 = 2_000;

/// The caller's next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Nothing: asks for the next act.
    Continue,
    /// Waits a moment.
    Pause,
    /// Takes the loaded vCPU out of the CPU; no guest of this CPU runs from here on.
    LeaveGuests,
    /// Saves all that this CPU carries, then calls [`Outbound::saved`].
    Save,
    /// Lends the CPU to the new image until that or a trap gives it back, then calls [`Outbound::returned`].
    Lend,
    /// Notes that the CPU is back: the other CPUs may not be.
    NoteReturn,
    /// A CPU did not come back although the new image's time has ended: the host cannot go on.
    Lost,
    /// The blackout is over for this CPU: it goes on with its guests in the old image.
    Done,
}

/// The reason why the new image no longer has the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Back {
    /// An NMI: another CPU or the watchdog has sent it.
    Nmi,
    /// Another interrupt, which the caller has delivered to the old image.
    Interrupt,
    /// The new image has seen that all CPUs stay in the old one.
    GoesBack,
    /// It gives up, has raised an exception, or does not follow the protocol.
    Failed,
}

/// One CPU's state.
#[derive(Debug)]
pub struct Outbound {
    index: u32,
    is_rehearsal: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Begun,
    Left,
    /// It has left its guests, and interrupts missing CPUs again at this time.
    Stopped(u64),
    Saving,
    Saved(bool),
    Ready,
    Away,
    Returned(Back),
    Back,
    Home,
    /// The time of the next NMIs, and the number already sent.
    Fetching(u64, u32),
    Done,
}

impl Outbound {
    /// Begins the blackout of the CPU `index`; `None` if it does not take part, or has been there.
    #[must_use]
    pub fn begin(index: u32, blackout: &Blackout) -> Option<Self> {
        Self::enter(index, blackout, false)
    }

    /// Begins a rehearsal: the CPU does all that it does in a blackout while guests run on others, up to the
    /// switch, and stays.
    #[must_use]
    pub fn rehearse(index: u32, blackout: &Blackout) -> Option<Self> {
        Self::enter(index, blackout, true)
    }

    fn enter(index: u32, blackout: &Blackout, is_rehearsal: bool) -> Option<Self> {
        blackout.admit(index).then_some(Self { index, is_rehearsal, state: State::Begun })
    }

    /// Notes that all has been saved, or not.
    pub fn saved(&mut self, is_saved: bool) {
        self.state = State::Saved(is_saved);
    }

    /// Notes that the CPU runs the old image again.
    pub fn returned(&mut self, back: Back) {
        self.state = State::Returned(back);
    }

    /// Returns the next act. Allocates nothing, waits for no lock, and returns at once.
    pub fn next(&mut self, blackout: &Blackout, words: &Takeover, platform: &impl Platform) -> Act {
        let (state, act) = match self.state {
            State::Begun => {
                platform.stamp(Stamp::Left);
                (State::Left, Act::LeaveGuests)
            }
            State::Left => {
                words.has_stopped();
                (State::Stopped(platform.now() + platform.ticks(REMINDER_US)), Act::Continue)
            }
            State::Stopped(remind_at) => self.stopped(remind_at, blackout, words, platform),
            State::Saved(is_saved) => self.report_saved(is_saved, words, platform),
            State::Ready => self.ready(words, platform),
            State::Returned(back) => self.judge(back, words, platform),
            State::Back => {
                blackout.note_back(self.index, platform.now());
                (State::Home, Act::NoteReturn)
            }
            State::Home => home(blackout, words, platform),
            State::Fetching(next, sent) => self.fetch(next, sent, blackout, words, platform),
            // The caller owes a result; without one nothing may go on.
            State::Saving => (State::Saving, Act::Save),
            State::Away => (State::Away, Act::Lend),
            State::Done => (State::Done, Act::Done),
        };
        self.state = state;
        act
    }

    /// Waits until all CPUs have stopped: only then does no CPU change the state that is to be saved.
    fn stopped(&self, remind_at: u64, blackout: &Blackout, words: &Takeover, platform: &impl Platform) -> (State, Act) {
        match words.may_save() {
            Way::Go => (State::Saving, Act::Save),
            Way::Stay => (State::Back, Act::Continue),
            Way::Wait if self.is_late(words, platform) => (self.state, Act::Continue),
            Way::Wait if blackout.is_leader(self.index) && platform.now() >= remind_at => {
                blackout.interrupt_missing(platform);
                (State::Stopped(platform.now() + platform.ticks(REMINDER_US)), Act::Pause)
            }
            Way::Wait => (self.state, Act::Pause),
        }
    }

    fn report_saved(&self, is_saved: bool, words: &Takeover, platform: &impl Platform) -> (State, Act) {
        platform.stamp(Stamp::Saved);
        match is_saved {
            true => words.has_saved(),
            false => _ = words.roll_back(self.index),
        }
        (State::Ready, Act::Continue)
    }

    /// Waits until all CPUs have saved: until then the new image lacks something.
    fn ready(&self, words: &Takeover, platform: &impl Platform) -> (State, Act) {
        match words.may_go() {
            Way::Go if self.is_rehearsal => {
                words.roll_back(self.index);
                (State::Back, Act::Continue)
            }
            Way::Go => {
                platform.stamp(Stamp::Gone);
                (State::Away, Act::Lend)
            }
            Way::Stay => (State::Back, Act::Continue),
            Way::Wait if self.is_late(words, platform) => (State::Ready, Act::Continue),
            Way::Wait => (State::Ready, Act::Pause),
        }
    }

    /// Returns whether the deadline has passed; then this CPU rolls back.
    fn is_late(&self, words: &Takeover, platform: &impl Platform) -> bool {
        let is_late = platform.now() > words.deadline();
        if is_late {
            words.roll_back(self.index);
        }
        is_late
    }

    /// Gives the CPU to the new image again, unless all go back: a committed update cannot be ended any more.
    fn judge(&self, back: Back, words: &Takeover, platform: &impl Platform) -> (State, Act) {
        let verdict = match back {
            Back::Interrupt => Verdict::Open,
            Back::GoesBack => words.verdict(),
            Back::Nmi => {
                if words.verdict() == Verdict::Open {
                    platform.note(Problem::TimedOut);
                }
                words.roll_back(self.index)
            }
            Back::Failed => {
                platform.note(Problem::Failed);
                words.roll_back(self.index)
            }
        };
        match verdict {
            Verdict::RolledBack => (State::Back, Act::Continue),
            Verdict::Open | Verdict::Committed => (State::Away, Act::Lend),
        }
    }

    /// Sends NMIs to CPUs that are not back until all are. An NMI that finds a CPU in the old image is passed over: one
    /// that has not come yet, because its interrupts were lost, is interrupted as well.
    fn fetch(
        &self,
        next: u64,
        sent: u32,
        blackout: &Blackout,
        words: &Takeover,
        platform: &impl Platform,
    ) -> (State, Act) {
        if words.are_all_back() {
            return finish(blackout, platform);
        }
        if platform.now() < next {
            return (self.state, Act::Pause);
        }
        if sent == MOST_NMIS {
            return (self.state, Act::Lost);
        }
        blackout.interrupt_missing(platform);
        blackout.send_nmis(self.index, platform);
        (State::Fetching(platform.now() + platform.ticks(NMI_INTERVAL_US), sent + 1), Act::Pause)
    }
}

/// Has the first CPU that is back fetch the others.
fn home(blackout: &Blackout, words: &Takeover, platform: &impl Platform) -> (State, Act) {
    if words.is_back() {
        let next = platform.now() + platform.ticks(blackout.first_nmi_us());
        return (State::Fetching(next, 0), Act::Continue);
    }
    finish(blackout, platform)
}

/// Has the leader answer the request once all are back.
fn finish(blackout: &Blackout, platform: &impl Platform) -> (State, Act) {
    platform.interrupt(blackout.leader());
    (State::Done, Act::Done)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The work that is left to an image that has taken over while its guests run: one step at a time on the leader, so
//! that the guests there wait for none of them long. The last step answers the request.

use crate::platform::Clock;
use crate::prepare::LONGEST_PAUSE_US;

/// Shortest time in µs for which guests run before the next step.
const PAUSE_US: u64 = 200;
/// After a step that took longer they run for so many times as long as it took, up to [`LONGEST_PAUSE_US`].
const REST: u64 = 3;
/// Longest time in µs for CPUs to report that they are back with their guests: until then the switch page is theirs,
/// too. On an emulator one may wait for a core.
const ENTER_LIMIT_US: u64 = 2_000_000;

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The old image's memory becomes this one's: every CPU has left it.
    Memory,
    /// The account of memory is complete.
    Account,
    /// Logs and timelines go on.
    Logs,
    /// IOMMUs: before any input of an I/O APIC is routed, since its entry is made for the unit that its interrupts
    /// pass.
    Iommus,
    /// The physical functions of guests.
    Functions,
    /// The host's console.
    Console,
    /// Guests' consoles.
    Consoles,
    /// Interrupts, and CPUs that are offline.
    Cpus,
    /// The control channel, and the answer.
    Control,
}

/// The progress of these steps.
#[derive(Debug)]
pub struct Finishing {
    next_step: u64,
    /// When the present step began.
    began: u64,
    entered_until: u64,
    step: Step,
}

impl Finishing {
    /// Begins with the first step.
    #[must_use]
    pub fn begin(clock: &impl Clock) -> Self {
        let now = clock.now();
        let (next_step, entered_until) = (now + clock.ticks(PAUSE_US), now + clock.ticks(ENTER_LIMIT_US));
        Self { next_step, began: now, entered_until, step: Step::Memory }
    }

    /// Returns when the next step is due.
    #[must_use]
    pub fn alarm(&self) -> u64 {
        self.next_step
    }

    /// Returns the step to take now, if one is due. After it the caller calls [`Self::end_step`], but for the last one.
    pub fn turn(&mut self, clock: &impl Clock, have_all_entered: impl FnOnce() -> bool) -> Option<Step> {
        let now = clock.now();
        if now < self.next_step {
            return None;
        }
        if self.step == Step::Memory && now < self.entered_until && !have_all_entered() {
            self.next_step = now + clock.ticks(PAUSE_US);
            return None;
        }
        self.began = now;
        Some(self.step)
    }

    /// Ends the step that was taken.
    pub fn end_step(&mut self, clock: &impl Clock) {
        self.step = match self.step {
            Step::Memory => Step::Account,
            Step::Account => Step::Logs,
            Step::Logs => Step::Iommus,
            Step::Iommus => Step::Functions,
            Step::Functions => Step::Console,
            Step::Console => Step::Consoles,
            Step::Consoles => Step::Cpus,
            Step::Cpus | Step::Control => Step::Control,
        };
        let now = clock.now();
        let rest = REST * (now - self.began);
        self.next_step = now + rest.clamp(clock.ticks(PAUSE_US), clock.ticks(LONGEST_PAUSE_US));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The owner's steps through the end, and the step that it goes on with when one fails.

use crate::sync::{AtomicU32, Ordering};

/// Steps of the owner, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Step {
    /// The reason is noted, so that a step that fails does not take its place in the report.
    Note = 0,
    /// The other CPUs are stopped.
    Stop,
    /// The report is printed.
    Report,
    /// The epitaph is written.
    Epitaph,
    /// The log's unprinted records are printed.
    Flush,
    /// Messages that wait for the control channel are sent.
    LastWords,
    /// The monitor of this machine is notified.
    Notify,
    /// The last one: rest, reboot or exit, with everything that is still served.
    Rest,
    /// Resting failed: the machine is reset or left where that was asked for, and nothing else is served.
    Leave,
    /// That failed, too, or was not asked for: the CPU halts without serving anything.
    Halt,
}

impl Step {
    const ALL: [Self; 10] = [
        Self::Note,
        Self::Stop,
        Self::Report,
        Self::Epitaph,
        Self::Flush,
        Self::LastWords,
        Self::Notify,
        Self::Rest,
        Self::Leave,
        Self::Halt,
    ];

    /// Returns the step after this one; the last step returns itself.
    pub fn next(self) -> Self {
        Self::ALL[(self as usize + 1).min(Self::ALL.len() - 1)]
    }
}

/// Watchdog expiries within one step after which the owner counts as hung there. More than one, since a slow console
/// takes its time and an emulated CPU may wait for a core.
const MOST_FOUND: u32 = 3;

/// The owner's progress.
pub struct EndProgress {
    step: AtomicU32,
    /// Number of watchdog expiries in this step.
    found: AtomicU32,
    failures: AtomicU32,
}

/// Consequence of a failure within the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepFailure {
    /// The step that failed.
    pub failed: Step,
    /// Go on with this one.
    pub resume: Step,
    /// A line may be printed about it: the first time only, since printing may be what fails.
    pub may_print: bool,
}

impl EndProgress {
    crate::sync::const_new! {
        /// At the first step.
        {
            Self { step: AtomicU32::new(Step::Note as u32), found: AtomicU32::new(0), failures: AtomicU32::new(0) }
        }
    }

    /// Notes that the owner begins `step`.
    pub fn enter(&self, step: Step) {
        self.found.store(0, Ordering::Relaxed);
        self.step.store(step as u32, Ordering::Release);
    }

    /// Counts a watchdog expiry. Returns whether the owner hangs in its current step.
    pub fn note_found(&self) -> bool {
        self.found.fetch_add(1, Ordering::Relaxed) + 1 >= MOST_FOUND
    }

    /// Returns the owner's current step.
    pub fn step(&self) -> Step {
        Step::ALL[(self.step.load(Ordering::Acquire) as usize).min(Step::ALL.len() - 1)]
    }

    /// Notes that the current step has failed: it counts as done from here on, so that the same failure never comes
    /// twice.
    pub fn fail_step(&self) -> StepFailure {
        let failed = self.step();
        let resume = failed.next();
        self.enter(resume);
        StepFailure { failed, resume, may_print: self.failures.fetch_add(1, Ordering::AcqRel) == 0 }
    }
}

impl Default for EndProgress {
    fn default() -> Self {
        Self::new()
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fewer notifications from a guest that sends frames close behind each other.

/// After so many polls in vain, the number of dense turns before the next try doubles no more.
const MOST_MISSES: u32 = 8;

/// The occasion on which a guest's frames are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// The guest has notified a device, or the time has come.
    Due,
    /// Another vCPU is about to get the CPU, and this one goes on where it was.
    Preempted,
    /// The vCPU waits for an interrupt.
    Idle,
}

/// Whether the driver of a device that sends is asked for notifications.
///
/// A notification is an exit, and each wakes the receiver. While frames are dense the driver is not asked for them, and
/// the queue is polled: some time later, and when the vCPU leaves the guest for longer than an exit. A poll that finds
/// nothing costs an exit; after each, more dense turns have to come before the next try.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mitigation {
    /// The time of the last turn that had frames.
    last_turn: u64,
    polls: bool,
    /// Polls in vain, less those that were not.
    misses: u32,
    /// Dense turns until the next try.
    wait: u32,
}

impl Mitigation {
    /// There are no more frames: returns whether the queue is polled from now on. `has_sent`: there were some in this
    /// turn. `dense`: the time after a turn until which the next one is dense.
    pub fn decide(&mut self, occasion: Occasion, has_sent: bool, now: u64, dense: u64) -> bool {
        let is_dense = has_sent && now.saturating_sub(self.last_turn) <= dense;
        self.polls = match (occasion, self.polls) {
            (Occasion::Preempted, polls) => polls,
            (_, true) if has_sent => {
                self.misses = self.misses.saturating_sub(1);
                true
            }
            (Occasion::Due, true) => {
                self.misses = (self.misses + 1).min(MOST_MISSES);
                self.wait = 1 << self.misses;
                false
            }
            (Occasion::Idle, true) => false,
            (_, false) => is_dense && self.is_worth_a_try(),
        };
        if has_sent {
            self.last_turn = now;
        }
        self.polls
    }

    /// A dense turn has come.
    fn is_worth_a_try(&mut self) -> bool {
        self.wait = self.wait.saturating_sub(1);
        self.wait == 0
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! State that the boot CPU and another one share about the other: its step, and the time of each.

use crate::state::{Phase, State};
use crate::sync::{AtomicU32, AtomicU64, Ordering, const_new, fence};
use crate::tsc::Exchange;

/// Times of a CPU's steps, in ticks of the boot CPU's clock as far as the difference is known. 0 is "not yet".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// It was ordered to start.
    pub kicked: u64,
    /// It ran its first instruction of ours.
    pub alive: u64,
    /// It had prepared itself.
    pub initialised: u64,
    /// Its clock was determined.
    pub synchronised: u64,
    /// It took work.
    pub online: u64,
    /// It was given up.
    pub dead: u64,
}

/// Way in which a CPU's clock was determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncOutcome {
    /// Not yet.
    Pending,
    /// Proven needless, or forbidden by the operator.
    Skipped,
    /// Measured; the difference is too small to be measured.
    Agrees,
    /// Differed, and was corrected.
    Corrected,
    /// Differs, and cannot be corrected: the difference is known.
    Differs,
    /// No CPU answered: nothing is known.
    Unmeasured,
}

impl SyncOutcome {
    const ALL: [Self; 6] =
        [Self::Pending, Self::Skipped, Self::Agrees, Self::Corrected, Self::Differs, Self::Unmeasured];
}

/// Result of a CPU's clock synchronisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSync {
    /// Way in which it was determined.
    pub outcome: SyncOutcome,
    /// Ticks by which it was behind the boot CPU's; with [`SyncOutcome::Differs`], by which it is.
    pub skew: i64,
    /// Greatest error of that in ticks: half the quickest round trip. Along a chain of CPUs that asked each other these
    /// add up.
    pub error: u64,
}

const KICKED: usize = 0;
const ALIVE: usize = 1;
const INITIALISED: usize = 2;
const SYNCHRONISED: usize = 3;
const ONLINE: usize = 4;
const DEAD: usize = 5;

/// One CPU, as all others see it. Lines of its own: a neighbour's progress does not disturb it.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct CpuCell {
    state: AtomicU32,
    permitted: AtomicU32,
    /// 1 while it sleeps or is about to.
    asleep: AtomicU32,
    sync_outcome: AtomicU32,
    stamps: [AtomicU64; 6],
    skew: AtomicU64,
    sync_error: AtomicU64,
    pub(crate) exchange: Exchange,
}

impl CpuCell {
    const_new! {
        /// An offline CPU. All its bytes are zero, so that a table of them costs nothing to make.
        {
            Self {
                state: AtomicU32::new(State::Offline.to_word()),
                permitted: AtomicU32::new(0),
                asleep: AtomicU32::new(0),
                sync_outcome: AtomicU32::new(0),
                stamps: [
                    AtomicU64::new(0),
                    AtomicU64::new(0),
                    AtomicU64::new(0),
                    AtomicU64::new(0),
                    AtomicU64::new(0),
                    AtomicU64::new(0),
                ],
                skew: AtomicU64::new(0),
                sync_error: AtomicU64::new(0),
                exchange: Exchange::new(),
            }
        }
    }

    /// Returns where the CPU stands. Its stamps up to this state can be read after this.
    pub fn state(&self) -> State {
        State::from_word(self.state.load(Ordering::Acquire))
    }

    /// Returns when it got where.
    pub fn stamps(&self) -> Stamps {
        let at = |stamp: usize| self.stamps[stamp].load(Ordering::Relaxed);
        Stamps {
            kicked: at(KICKED),
            alive: at(ALIVE),
            initialised: at(INITIALISED),
            synchronised: at(SYNCHRONISED),
            online: at(ONLINE),
            dead: at(DEAD),
        }
    }

    /// Returns the outcome of its clock's synchronisation.
    pub fn sync(&self) -> ClockSync {
        let outcome = self.sync_outcome.load(Ordering::Acquire) as usize;
        ClockSync {
            outcome: SyncOutcome::ALL.get(outcome).copied().unwrap_or(SyncOutcome::Unmeasured),
            skew: self.skew.load(Ordering::Relaxed) as i64,
            error: self.sync_error.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn set_sync(&self, sync: ClockSync) {
        self.skew.store(sync.skew as u64, Ordering::Relaxed);
        self.sync_error.store(sync.error, Ordering::Relaxed);
        self.sync_outcome.store(sync.outcome as u32, Ordering::Release);
    }

    /// Converts the stamps that it left before its clock was determined to the boot CPU's clock.
    pub(crate) fn shift_early_stamps(&self, ticks: i64) {
        for stamp in [&self.stamps[ALIVE], &self.stamps[INITIALISED]] {
            stamp.store(stamp.load(Ordering::Relaxed).wrapping_add_signed(ticks), Ordering::Relaxed);
        }
    }

    /// Moves the CPU on, if it still stands at `from` and the step is legal.
    ///
    /// # Errors
    /// The state that it is in instead.
    pub(crate) fn advance(&self, from: State, to: State, now: u64) -> Result<(), State> {
        if !from.may_become(to) {
            return Err(self.state());
        }
        let stamp = match to {
            State::Kicked => Some(KICKED),
            State::Alive => Some(ALIVE),
            State::Initialised => Some(INITIALISED),
            State::TscSynchronised => Some(SYNCHRONISED),
            State::Online => Some(ONLINE),
            State::Dead(_) => Some(DEAD),
            State::Offline | State::Parked => None,
        };
        if let Some(stamp) = stamp {
            // Before the state, so that the CPU that sees the state sees the stamp.
            self.stamps[stamp].store(now, Ordering::Relaxed);
        }
        let moved = self.state.compare_exchange(from.to_word(), to.to_word(), Ordering::AcqRel, Ordering::Acquire);
        moved.map(|_| ()).map_err(State::from_word)
    }

    /// Notes that the CPU is about to be ordered to start. `false` if it was already, or may not be.
    pub(crate) fn kick(&self, now: u64) -> bool {
        match self.state() {
            from @ (State::Offline | State::Parked) => self.advance(from, State::Kicked, now).is_ok(),
            _ => false,
        }
    }

    /// Gives the CPU up, if it still stands where it was seen.
    ///
    /// # Errors
    /// Where it stands instead: it has moved after all.
    pub(crate) fn condemn(&self, seen: State, now: u64) -> Result<Phase, State> {
        let seen = match seen {
            State::Offline | State::Parked => {
                self.advance(seen, State::Kicked, now)?;
                State::Kicked
            }
            _ => seen,
        };
        let phase = seen.awaited().ok_or(seen)?;
        self.advance(seen, State::Dead(phase), now).map(|()| phase)
    }

    /// Notes that the CPU waits at its mailbox: the image before has parked it. `false` if the cell is in use.
    pub fn mark_parked(&self) -> bool {
        self.advance(State::Offline, State::Parked, 0).is_ok()
    }

    /// Notes that the CPU runs already: the image before has handed it over. `false` if the cell is in use.
    pub fn mark_online(&self, sync: SyncOutcome) -> bool {
        self.sync_outcome.store(sync as u32, Ordering::Release);
        let (offline, online) = (State::Offline.to_word(), State::Online.to_word());
        self.state.compare_exchange(offline, online, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Takes the CPU offline: to its mailbox, or for good. Only a CPU that is online can leave.
    ///
    /// # Errors
    /// The state that it is in instead.
    pub fn leave(&self, to: State) -> Result<(), State> {
        self.advance(State::Online, to, 0)
    }

    /// Marks the CPU as about to sleep: it checks its condition once more, and then sleeps.
    ///
    /// The CPU that changes a sleeper's condition asks [`must_be_woken`](Self::must_be_woken) after the change. At
    /// least one of the two sees the other's write: the sleeper sees the change, or the other CPU sees the sleeper. (A
    /// full fence is between write and read on either side; without it, store buffers would let both read too early.)
    pub(crate) fn mark_asleep(&self) {
        // All writes of this word are exchanges, so that each comes after whatever a late waker wrote.
        self.asleep.swap(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Marks the CPU as awake. A wake-up under way finds it awake, which is harmless.
    pub(crate) fn mark_awake(&self) {
        if self.asleep.load(Ordering::Relaxed) == 1 {
            self.asleep.swap(0, Ordering::Relaxed);
        }
    }

    /// Returns whether the caller has to wake the CPU. Of several callers, one has to.
    pub(crate) fn must_be_woken(&self) -> bool {
        fence(Ordering::SeqCst);
        self.asleep.load(Ordering::Relaxed) == 1 && self.asleep.swap(0, Ordering::Relaxed) == 1
    }

    pub(crate) fn permitted(&self) -> u32 {
        self.permitted.load(Ordering::Acquire)
    }

    pub(crate) fn permit(&self, permission: u32) {
        self.permitted.store(permission, Ordering::Release);
    }
}

impl Default for CpuCell {
    fn default() -> Self {
        Self::new()
    }
}

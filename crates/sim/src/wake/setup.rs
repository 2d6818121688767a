// SPDX-License-Identifier: MIT OR Apache-2.0
//! Setup of a model, and its outcome.

use bringup::startup::{Limits, Reach};
use bringup::state::Phase;
use bringup::tsc::{Mode, SyncPlan};
use bringup::{ClockSync, Plan, Policy, State, Summary, Waits};

use super::machine::Machine;

/// Behaviour of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    /// It does all it should.
    #[default]
    Healthy,
    /// This many start-up interrupts to it get lost.
    LosesStartups(u32),
    /// It does all it should until this is waited for, then nothing more.
    DiesIn(Phase),
    /// It does all it should, but its first sign comes this much later.
    Sleeps(u64),
    /// Its mailbox holds something else. Concerns parked CPUs only.
    BadSlot,
}

/// A bring-up to be modelled.
#[derive(Clone, Debug)]
pub struct Setup {
    /// CPUs, the boot CPU included.
    pub cpus: u32,
    /// Way in which they are brought up.
    pub policy: Policy,
    /// The CPUs that one interrupt wakes.
    pub reach: Reach,
    /// Way in which their clocks are synchronised.
    pub tsc: Mode,
    /// True if the counters run at one rate, and show in `IA32_TSC_ADJUST` what was written to them.
    pub has_tsc_adjust: bool,
    /// Their counters are up to this far from the boot CPU's.
    pub largest_skew: u64,
    /// True if they are known to run on fewer real ones.
    pub shares_cpus: bool,
    /// CPUs (by number) that are not healthy.
    pub fates: Vec<(u32, Fate)>,
    /// Those brought up at first; `None` is all.
    pub wanted: Option<Vec<u32>>,
    /// Those that come one by one once that is over; one that was online leaves before. Not for broadcasts and
    /// mailboxes.
    pub later: Vec<u32>,
    /// Another seed draws other latencies from the same ranges.
    pub seed: u64,
}

impl Setup {
    /// Returns a bring-up with all CPUs healthy, all counters equal and proven so.
    pub fn new(cpus: u32, policy: Policy, reach: Reach) -> Self {
        let (tsc, has_tsc_adjust, largest_skew) = (Mode::Auto, true, 0);
        let (shares_cpus, fates, wanted, later) = (false, Vec::new(), None, Vec::new());
        Self { cpus, policy, reach, tsc, has_tsc_adjust, largest_skew, shares_cpus, fates, wanted, later, seed: 1 }
    }

    pub(super) fn plan(&self, machine: &Machine) -> Plan {
        let sync = SyncPlan {
            mode: self.tsc,
            is_invariant: self.has_tsc_adjust,
            boot_adjust: self.has_tsc_adjust.then_some(0),
            package_shift: 32,
            shares_cpus: self.shares_cpus,
        };
        let limits = Limits::new(machine.ticks_per_us, 0);
        Plan { policy: self.policy, reach: self.reach, startup_page: 8, limits, sync, reset_at: None }
    }
}

/// Outcome of a modelled CPU.
#[derive(Clone, Copy, Debug)]
pub struct CpuOutcome {
    /// Its state.
    pub state: State,
    /// It takes work, in any state.
    pub takes_work: bool,
    /// Result of its clock's synchronisation.
    pub sync: ClockSync,
    /// By how much its counter is really ahead of the boot CPU's, in the end.
    pub skew: i64,
    /// Times that INIT hit it while it ran.
    pub resets_while_running: u32,
    /// Waits of the boot CPU for it.
    pub waits: Waits,
}

/// Outcome of a modelled bring-up.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Bring-up's own summary.
    pub summary: Summary,
    /// Ticks that the boot CPU waited for the last first sign of life.
    pub last_first_sign: u64,
    /// Each CPU but the first, number 1 at position 0.
    pub cpus: Vec<CpuOutcome>,
}

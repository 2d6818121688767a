// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stopping the other CPUs. First an interrupt is sent, which CPUs in their loop or in a guest take; then an NMI, for
//! CPUs with interrupts masked. A CPU that answers neither is only named in the report.

use crate::ending::Ending;
use crate::set::CpuSet;

/// The hardware operations that stopping needs.
pub trait Stopper {
    /// Reads a clock, in ticks.
    fn now(&mut self) -> u64;
    /// Pauses for a moment.
    fn pause(&mut self);
    /// Sends CPU `cpu` the interrupt to stop by.
    fn interrupt(&mut self, cpu: u32);
    /// Sends it an NMI.
    fn nmi(&mut self, cpu: u32);
}

/// Longest waits for answers.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Ticks for answers to the interrupt.
    pub interrupt_ticks: u64,
    /// Ticks for answers to the NMI.
    pub nmi_ticks: u64,
    /// Polls of the clock that either wait may take, for a clock that stands still.
    pub polls: u64,
}

/// The way in which each of the others was stopped. The three sets are disjoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StopOutcome {
    /// By the interrupt, or on their own.
    pub by_interrupt: CpuSet,
    /// By the NMI.
    pub by_nmi: CpuSet,
    /// Not at all: they may still run.
    pub unresponsive: CpuSet,
}

/// Stops `others` and waits for their answers ([`Ending::has_stopped`]), at most as long as `limits` states.
pub fn stop_others(ending: &Ending, others: CpuSet, stopper: &mut impl Stopper, limits: Limits) -> StopOutcome {
    let running = others.without(&ending.stopped());
    running.iter().for_each(|cpu| stopper.interrupt(cpu));
    let by_interrupt = wait(ending, others, stopper, limits.interrupt_ticks, limits.polls);
    let masked = others.without(&by_interrupt);
    masked.iter().for_each(|cpu| stopper.nmi(cpu));
    let by_nmi = wait(ending, masked, stopper, limits.nmi_ticks, limits.polls);
    StopOutcome { by_interrupt, by_nmi, unresponsive: masked.without(&by_nmi) }
}

/// Returns those of `wanted` that have stopped, when all have or the time is over.
fn wait(ending: &Ending, wanted: CpuSet, stopper: &mut impl Stopper, ticks: u64, polls: u64) -> CpuSet {
    let start = stopper.now();
    for _ in 0..polls {
        let stopped = wanted.common(&ending.stopped());
        if stopped == wanted || stopper.now().wrapping_sub(start) >= ticks {
            return stopped;
        }
        stopper.pause();
    }
    wanted.common(&ending.stopped())
}

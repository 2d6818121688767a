// SPDX-License-Identifier: MIT OR Apache-2.0
//! Performance of a machine's CPU, seen from outside.

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use super::ExitCount;

/// A vCPU's figures, all of one moment. What is counted goes on from one moment to the next; a new image
/// begins again with all but the exits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VcpuPerf {
    /// Time of the samples, in nanoseconds since the host started.
    pub at_ns: u64,
    /// For how long it has had the CPU on which it is, in nanoseconds.
    pub ran_ns: u64,
    /// Time for which it was ready to run while others had the CPU.
    pub waited_ns: u64,
    /// Ticks of the time stamp counter that it has spent in the guest while any of its counters counted, or the host's
    /// did.
    pub counted_ticks: u64,
    /// Exits by kind; kinds that never came are left out.
    pub exits: Vec<ExitCount>,
    /// Its performance counters that have been given an event.
    pub counters: Vec<PerfCounter>,
}

/// The host's own counters of a CPU, all of one moment: since they were begun, on the time stamp counter. Time that is
/// neither the host's nor idle was some guest's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuPerf {
    /// Time of the reading, in nanoseconds since the host started.
    pub at_ns: u64,
    /// Time at which they were begun, likewise: again on a CPU that was offline, in another image, and after a long
    /// time without a request.
    pub began_ns: u64,
    /// Ticks since then.
    pub ticks: u64,
    /// Cycles in which the host executed; 48 bits, like the two below.
    pub host_cycles: u64,
    /// The same at the rate of the time stamp counter.
    pub host_reference_cycles: u64,
    /// Ticks in which the CPU waited for an interrupt.
    pub idle_ticks: u64,
    /// Ticks in vCPUs that have left it since.
    pub gone_ticks: u64,
    /// Those that are on it.
    pub guests: Vec<GuestTicks>,
}

/// Ticks for which a CPU has executed a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestTicks {
    /// The machine's number: its place in [`crate::ReplyBody::Vms`].
    pub guest: u32,
    /// Its number in its machine.
    pub vcpu: u32,
    /// Ticks in the guest since it came, or the counters were begun.
    pub ticks: u64,
}

/// A performance counter as its guest has set it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PerfCounter {
    /// Its number.
    pub number: u8,
    /// It is among those of fixed purpose.
    pub is_fixed: bool,
    /// Its event.
    pub event: PerfEvent,
    /// True if it counts in user mode.
    pub user: bool,
    /// True if it counts in kernel mode.
    pub kernel: bool,
    /// Its state.
    pub state: PerfState,
    /// Value that the guest reads.
    pub value: u64,
    /// Number of its overflows.
    pub overflows: u64,
}

/// Event of a performance counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PerfEvent {
    /// Cycles.
    Cycles,
    /// Cycles at the rate of the time stamp counter.
    ReferenceCycles,
    /// Instructions.
    Instructions,
    /// An event of the CPU's vendor alone.
    Vendor {
        /// Event select.
        select: u16,
        /// Unit mask.
        unit: u8,
    },
}

impl fmt::Display for PerfEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cycles => f.pad("cycles"),
            Self::ReferenceCycles => f.pad("ref-cycles"),
            Self::Instructions => f.pad("instructions"),
            Self::Vendor { select, unit } => write!(f, "event={select:#x},umask={unit:#x}"),
        }
    }
}

/// State of a performance counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PerfState {
    /// It does.
    Counts,
    /// The guest has stopped it.
    Stopped,
    /// The guest has enabled it, and it does not count: the guest may not count that event, or this host cannot.
    NotCounted,
}

impl fmt::Display for PerfState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Counts => "counts",
            Self::Stopped => "stopped",
            Self::NotCounted => "not counted",
        })
    }
}

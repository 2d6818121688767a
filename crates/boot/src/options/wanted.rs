// SPDX-License-Identifier: MIT OR Apache-2.0
//! All options with their values.

use arrayvec::ArrayVec;
use klog::Level;
use seal::Verify;

use super::choices::{
    ApicMode, Console, GuestStart, KickTime, LogBuffer, PanicAction, Smp, Transmit, TscSync, UpdateLimit,
};
use super::cpu_list::CpuList;
use super::measurement::{MAXIMUM_MEASUREMENTS, Measurement};
use super::memory::{BadMemory, FramePolicy, HugeFrames};

/// The operator's choices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `log`: the least important level that is logged.
    pub log: Level,
    /// `log-buffer`: how much log is kept.
    pub log_buffer: LogBuffer,
    /// `console`: where the log is printed.
    pub console: Console,
    /// `apic`: how the local APIC is driven.
    pub apic: ApicMode,
    /// `panic`: the action after a panic of the host.
    pub panic: PanicAction,
    /// `cpus`: CPUs to use at most; `None` is all.
    pub cpus: Option<u32>,
    /// `cpu`: which CPUs to use, by number; `None` is all.
    pub cpu: Option<CpuList>,
    /// `smp`: how the other CPUs are brought up.
    pub smp: Smp,
    /// `kick`: when the other CPUs are ordered to start.
    pub kick: KickTime,
    /// `tsc`: how all clocks are made to agree.
    pub tsc: TscSync,
    /// `verify`: when an image that is to replace this one is checked.
    pub verify: Verify,
    /// `frames`: how the owner of each frame is recorded.
    pub frames: FramePolicy,
    /// `hvo`: the records of a huge frame's tail are never written.
    pub hvo: bool,
    /// `huge-frames`: huge frames that are set aside for guests.
    pub huge_frames: HugeFrames,
    /// `bad-memory`: memory that must not be used.
    pub bad_memory: BadMemory,
    /// `pci`: which PCI functions are probed, and when.
    pub pci: pci::Filter,
    /// `pmu`: the counters that guests' events are counted with.
    pub pmu: pmu::Choice,
    /// `mitigations`: whether speculation vulnerabilities are mitigated.
    pub mitigations: mitigations::Mode,
    /// `smt`: which threads of a core run guests.
    pub smt: mitigations::Smt,
    /// `vpmu`: the cost of a guest's change of the events that its performance counters count.
    pub vpmu: pmu::Policy,
    /// `update-limit`: how long guests may stand still in an update before it is rolled back.
    pub update_limit: UpdateLimit,
    /// `guests`: which guests start with the host.
    pub guests: GuestStart,
    /// `restart-after-guests`: when no guest is left running, the host restarts warm until this generation.
    pub restart_after_guests: u64,
    /// `measure`: the measurements that the host takes of itself.
    pub measurements: ArrayVec<Measurement, MAXIMUM_MEASUREMENTS>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            log: Level::Info,
            log_buffer: LogBuffer::DEFAULT,
            console: Console::Serial { baud: 115_200, transmit: Transmit::Fifo },
            apic: ApicMode::Auto,
            panic: PanicAction::Halt,
            cpus: None,
            cpu: None,
            smp: Smp::Park,
            kick: KickTime::Early,
            tsc: TscSync::Auto,
            verify: Verify::Early,
            frames: FramePolicy::Extents,
            hvo: true,
            huge_frames: HugeFrames::default(),
            bad_memory: BadMemory::default(),
            pci: pci::Filter::Lazy,
            pmu: pmu::Choice::Soft,
            mitigations: mitigations::Mode::Auto,
            smt: mitigations::Smt::Auto,
            vpmu: pmu::Policy::Direct,
            update_limit: UpdateLimit::Auto,
            guests: GuestStart::Auto,
            restart_after_guests: 1,
            measurements: ArrayVec::new(),
        }
    }
}

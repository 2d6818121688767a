// SPDX-License-Identifier: MIT OR Apache-2.0
//! One guest's machine: its devices behind their ports and addresses, and the answer to every exit.
//!
//! ```text
//! Exit ──► exits ──┬─► CPUID, MSRs ──────────► CPU (local APIC, clock)
//!                  ├─► ports ──┬────────────► Bus of devices (a lock for each)
//!                  └─► memory ─┘                  │ interrupt messages
//!                                                 ▼
//! next entry ◄── interrupts: the highest vector, or a window ◄── local APIC
//! ```
//!
//! The state of one vCPU is in [`Cpu`] and needs no lock; the state that its CPUs share is in its [`Bus`]. Time, the
//! console and the real alarm come from the [`Host`]. The code that answers an exit has them all as one argument, a
//! [`VcpuContext`](context::VcpuContext).

mod activity;
mod completion;
pub mod context;
mod counting;
mod devices;
pub mod emulate;
mod exit_statistics;
mod exits;
mod host;
mod hypercalls;
pub mod instruction;
mod interrupts;
mod mailbox;
mod msrs;
mod nmi;
mod others;
mod outcome;
mod ports;
mod raising;
mod registers;
mod saved;
mod sending;
mod startup;
mod steal;
mod step;
mod stepping;
mod sync;
pub mod walk;
mod watch;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::AtomicUsize;

use pmu::VcpuCounters;

use crate::cpu::cpuid::{CpuidTable, Speculation};
use crate::cpu::kvmclock::{SharedArea, TscScale, VcpuClock};
use crate::cpu::msr::PlainMsrs;
use crate::cpu::steal_time::StealTime;
use crate::devices::GuestTsc;
use crate::devices::bus::Bus;
use crate::devices::lapic::Lapic;
use crate::memory::GuestMemory;

use emulate::Recent;
use mailbox::Mailbox;
use nmi::Nmi;
use stepping::Step;

pub use activity::Activity;
pub use exit_statistics::{ExitKind, ExitStatistics};
pub use host::Host;
pub use others::Others;
pub use outcome::{Fault, Outcome, Stop};
pub use saved::{Full, check_area, move_policy, move_vcpu, note_initial_x87};

/// The next overflow's time if there is none.
const NEVER: u64 = u64::MAX;

/// State that the vCPUs of one guest share.
pub struct Machine<M> {
    memory: M,
    cpuid: CpuidTable,
    scale: TscScale,
    /// Wall clock at the guest's time 0.
    boot_unix_ns: u64,
    bus: Bus,
    /// One per vCPU; the index is its APIC identifier.
    mailboxes: Vec<Mailbox>,
    /// True if MISC_ENABLE exists, which is Intel's.
    has_misc_enable: bool,
    /// vCPUs that an interrupt from inside the guest can reach.
    alive: AtomicUsize,
    /// vCPUs that have halted with interrupts disabled.
    halted_for_good: AtomicUsize,
    /// LFENCE serializes on the host.
    lfence_serializes: bool,
    /// The guest is shown KVM's features for vCPUs that share CPUs.
    is_paravirtual: bool,
}

/// The parameters of a machine.
pub struct MachineConfig {
    /// vCPUs; their APIC identifiers count from 0.
    pub vcpus: u32,
    /// The CPUID table.
    pub cpuid: CpuidTable,
    /// Rate of the time stamp counter.
    pub scale: TscScale,
    /// Wall clock at the guest's time 0, in nanoseconds since 1970.
    pub boot_unix_ns: u64,
    /// True if there is a debug-exit port.
    pub has_debug_exit: bool,
}

/// The work of a switch about a vCPU's performance counters: nothing for a vCPU that has none or uses none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct CountersSwitch {
    /// They are to be opened when it is switched in.
    opens: bool,
    /// They are to be closed when it is switched out.
    closes: bool,
}

/// State of one vCPU beside its architectural state.
pub struct Cpu {
    lapic: Lapic,
    msrs: PlainMsrs,
    clock: VcpuClock,
    steal: StealTime,
    /// The flag by which the guest learns that it need not write EOI.
    eoi_flag: SharedArea,
    /// The flag is set: the interrupt in service may end without an exit.
    eoi_flag_is_set: bool,
    nmi: Nmi,
    /// An instruction that is being stepped over; only from the preparation of an entry to the exit.
    step: Option<Step>,
    activity: Activity,
    /// Another CPU has woken it while it had not halted: its next halt ends at once.
    is_unhalted: bool,
    /// The host's time stamp counter at the guest's time 0.
    tsc_at_start: u64,
    /// Added to the host's time stamp counter.
    tsc_offset: u64,
    /// The last setting of the host's alarm.
    alarm: Option<u64>,
    /// The address at which the guest last read its time stamp counter.
    clock_read_at: Option<u64>,
    /// Instructions on device registers that it has used lately.
    recent: Recent,
    /// The last instruction on a device register was not emulated: the guest executes it again.
    is_executed_again: bool,
    exits: Arc<ExitStatistics>,
    /// Its performance counters, if it has any.
    pmu: Option<VcpuCounters>,
    /// True if any of them counts.
    counts: bool,
    /// True if a switch concerns them.
    counters_switch: CountersSwitch,
    /// Time of the next overflow, in ticks of the guest's own time (see `counting`).
    overflow_at: u64,
    /// The same at the earliest, on the host's time stamp counter.
    overflow_alarm: Option<u64>,
}

impl<M: GuestMemory> Machine<M> {
    /// A machine after power-on, with memory that a loader has filled.
    pub fn new(memory: M, config: MachineConfig) -> Self {
        instruction::prepare();
        let bus = Bus::new(config.has_debug_exit);
        bus.open_apertures(memory.size_bytes());
        Self {
            memory,
            has_misc_enable: !config.cpuid.is_amd(),
            is_paravirtual: config.cpuid.is_paravirtual(),
            cpuid: config.cpuid,
            scale: config.scale,
            boot_unix_ns: config.boot_unix_ns,
            bus,
            mailboxes: (0..config.vcpus).map(|id| Mailbox::new(Lapic::new(id, id == 0).addressing())).collect(),
            alive: AtomicUsize::new(1),
            halted_for_good: AtomicUsize::new(0),
            lfence_serializes: true,
        }
    }

    /// Sets whether LFENCE serializes on the host, as the guest's DE_CFG shows it. It does unless this is called.
    pub fn set_lfence_serializes(&mut self, holds: bool) {
        self.lfence_serializes = holds;
    }

    /// The registers that control speculation, as far as the guest was informed of them.
    pub fn speculation(&self) -> Speculation {
        self.cpuid.speculation()
    }

    /// The guest's CPUID.
    pub fn cpuid(&self) -> &CpuidTable {
        &self.cpuid
    }

    /// The machine's devices.
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// The machine's devices, to add one. Those that not every machine has are attached before it runs or is restored.
    pub fn bus_mut(&mut self) -> &mut Bus {
        &mut self.bus
    }

    /// The guest's memory.
    pub fn memory(&self) -> &M {
        &self.memory
    }
}

impl Cpu {
    /// A CPU after power-on. Its time stamp counter starts at 0 when the host's is at `tsc_at_start`.
    /// Its exits are counted in `exits`, which others may read.
    pub fn new(
        apic_id: u32,
        is_bootstrap: bool,
        tsc_at_start: u64,
        microcode_revision: u32,
        exits: Arc<ExitStatistics>,
    ) -> Self {
        Self {
            lapic: Lapic::new(apic_id, is_bootstrap),
            msrs: PlainMsrs::new(microcode_revision),
            clock: VcpuClock::default(),
            steal: StealTime::default(),
            eoi_flag: SharedArea::default(),
            eoi_flag_is_set: false,
            nmi: Nmi::new(),
            step: None,
            activity: if is_bootstrap { Activity::Running } else { Activity::WaitingForStartup },
            is_unhalted: false,
            tsc_at_start,
            tsc_offset: tsc_at_start.wrapping_neg(),
            alarm: None,
            clock_read_at: None,
            recent: Recent::default(),
            is_executed_again: false,
            exits,
            pmu: None,
            counts: false,
            counters_switch: CountersSwitch::default(),
            overflow_at: NEVER,
            overflow_alarm: None,
        }
    }

    /// Returns its activity.
    pub fn activity(&self) -> Activity {
        self.activity
    }

    /// Returns when its timer wants it, on the host's time stamp counter.
    pub fn next_alarm(&self) -> Option<u64> {
        self.alarm
    }

    /// Returns the offset that is added to the host's time stamp counter.
    pub fn tsc_offset(&self) -> u64 {
        self.tsc_offset
    }

    #[inline]
    fn now(&self, host: &impl Host) -> GuestTsc {
        GuestTsc(host.tsc().wrapping_add(self.tsc_offset))
    }
}

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! One vCPU: its registers, and what its machine keeps for it.

use zerocopy::little_endian::{U32, U64};

use super::registers::Registers;
use crate::macros::{numbered, plain};

/// Kinds of exits that can be counted.
pub const COUNTERS: usize = 16;
/// Event selects of a vCPU at most.
pub const COUNTER_SELECTS: usize = 8;
/// Its performance counters at most.
pub const COUNTER_VALUES: usize = 12;

plain! {
    /// A vCPU while no image runs it.
    pub struct Vcpu since 2 {
        /// Its registers.
        pub registers: Registers as "piece",
        /// Its local APIC.
        pub lapic: Lapic as "piece",
        /// Messages from others that it has not read.
        pub mail: Mail as "piece",
        /// Interrupts on their way, beside its local APIC.
        pub events: Events as "piece",
        /// Its clocks.
        pub time: Time as "piece",
        /// Model-specific registers that only hold a value.
        pub msrs: Msrs as "piece",
        /// Registers that stay in the CPU across exits; their area is the block's tail.
        pub extended: Extended as "piece",
        /// Its share of the CPU.
        pub turn: Turn as "piece",
        /// Its exits, by reason; unused ones are zero.
        pub counters: [U64; COUNTERS] as "count",
        /// Findings of its monitor.
        pub watch: Watch as "piece" since 3,
        /// Its performance counters; zero where it has none.
        pub pmu: Pmu as "piece" since 3,
        /// Its speculation control; zero where it was not shown such a register.
        pub speculation: Speculation as "piece" since 4,
        /// Second NMIs, of those that are reported elsewhere.
        pub more_nmis: MoreNmis as "piece" since 4,
        /// The virtualization extension that ran it.
        pub extension: Extension as "piece" since 4,
    }

    /// A virtualization extension: the other vendor's cannot go on with what one has saved.
    pub struct Extension since 4 {
        /// Of [`ExtensionKind`]; zero in every version before.
        pub kind: U32 as "number",
        /// Zero.
        pub zero: U32 as "zero",
    }

    /// Registers that control speculation.
    pub struct Speculation since 4 {
        /// SPEC_CTRL.
        pub spec_ctrl: U64 as "register",
    }

    /// Second NMIs: a CPU keeps one that it is about to take, and one that waits for the end of that one's
    /// handler. And another CPU's wake-up.
    pub struct MoreNmis since 4 {
        /// Of [`more_nmi`].
        pub flags: U32 as "flags",
        /// Of [`unhalt_flag`].
        pub unhalt: U32 as "flags",
    }

    /// Findings of a guest's monitor about a vCPU, and the monitor's measures.
    pub struct Watch since 3 {
        /// It rests until then, with [`watch_flag::RESTS`]; else 0.
        pub rests_until: U64 as "ticks",
        /// Of [`watch_flag`].
        pub flags: U32 as "flags",
        /// Zero.
        pub zero: U32 as "zero",
    }

    /// Performance counters as the guest has them: registers by their manual's names.
    pub struct Pmu since 3 {
        /// Event selects.
        pub selects: [U64; COUNTER_SELECTS] as "register",
        /// Values of the counters: the general ones, and from the ninth on the fixed-function ones.
        pub values: [U64; COUNTER_VALUES] as "count",
        /// Intel's fixed counter control.
        pub fixed_control: U64 as "register",
        /// Global control.
        pub global_control: U64 as "register",
        /// Global status.
        pub global_status: U64 as "register",
        /// Intel's DEBUGCTL.
        pub debug_control: U64 as "register",
        /// 1: a counter has overflowed and its interrupt has not been raised.
        pub interrupts: U32 as "flag",
        /// Zero.
        pub zero: U32 as "zero",
    }

    /// A local APIC.
    pub struct Lapic since 2 {
        /// IA32_APIC_BASE.
        pub apic_base: U64 as "register",
        /// Vectors requested: bit `v % 64` of word `v / 64`.
        pub requested: [U64; 4] as "vectors",
        /// Vectors in service.
        pub in_service: [U64; 4] as "vectors",
        /// Vectors whose last interrupt was level-triggered.
        pub trigger_mode: [U64; 4] as "vectors",
        /// Time at which the timer is due; 0: stopped.
        pub timer_deadline: U64 as "guest ticks",
        /// Interrupt command register.
        pub interrupt_command: U64 as "register",
        /// The identifier.
        pub id: U32 as "number",
        /// Spurious interrupt vector register.
        pub spurious: U32 as "register",
        /// Timer, thermal, performance, pins 0 and 1, error.
        pub local_vectors: [U32; 6] as "register",
        /// Timer's initial count.
        pub initial_count: U32 as "register",
        /// Timer's divider register.
        pub divide: U32 as "register",
        /// Logical destination register of xAPIC mode.
        pub logical_destination: U32 as "register",
        /// Destination format register.
        pub destination_format: U32 as "register",
        /// Error status register as it reads.
        pub error_status: U32 as "register",
        /// Errors since it was last written.
        pub errors_pending: U32 as "register",
        /// Task priority register.
        pub task_priority: U32 as "register",
        /// Zero.
        pub zero: U32 as "zero",
    }

    /// A pending-interrupt mailbox: messages from other vCPUs.
    pub struct Mail since 2 {
        /// Vectors posted.
        pub requested: [U64; 4] as "vectors",
        /// Those of them that are level-triggered.
        pub is_level: [U64; 4] as "vectors",
        /// Of [`mail_flag`], with a start-up interrupt's page below.
        pub start: U32 as "flags",
        /// Zero.
        pub zero: U32 as "zero",
    }

    /// Interrupts on their way.
    pub struct Events since 2 {
        /// Address at which the guest checks whether it must write EOI: the MSR's value.
        pub eoi_area: U64 as "register",
        /// Address of the IRET that is being executed, with [`NmiGate::Returning`]; else 0.
        pub nmi_return_rip: U64 as "register",
        /// Time of the next check for a pending NMI, with [`event_state::LOOKS`]; else 0.
        pub look_at: U64 as "ticks",
        /// A [`NmiGate`]'s number.
        pub nmi_gate: U32 as "number",
        /// An [`Activity`]'s number.
        pub activity: U32 as "number",
        /// Of [`event_state`].
        pub flags: U32 as "flags",
        /// Zero.
        pub zero: U32 as "zero",
    }

    /// A vCPU's clocks.
    pub struct Time since 2 {
        /// The host's time stamp counter at the guest's time 0.
        pub tsc_at_start: U64 as "ticks",
        /// Added to the host's time stamp counter.
        pub tsc_offset: U64 as "ticks",
        /// Last setting of the host's alarm, with [`event_state::HAS_ALARM`]; else 0.
        pub alarm: U64 as "ticks",
        /// Paravirtual clock: the MSR's value.
        pub clock_area: U64 as "register",
        /// Steal time: the MSR's value.
        pub steal_area: U64 as "register",
        /// Stolen time that the guest was informed of.
        pub steal_told_ns: U64 as "ns",
        /// Stolen time when last heard of.
        pub stolen_ns: U64 as "ns",
        /// Paravirtual clock: the version last written.
        pub clock_version: U32 as "count",
        /// Steal time: the version last written.
        pub steal_version: U32 as "count",
    }

    /// Model-specific registers that only hold a value.
    pub struct Msrs since 2 {
        /// MCG_STATUS.
        pub mcg_status: U64 as "register",
        /// IA32_MISC_ENABLE.
        pub misc_enable: U64 as "register",
        /// IA32_MTRR_DEF_TYPE.
        pub mtrr_default_type: U64 as "register",
        /// HWCR.
        pub hwcr: U64 as "register",
        /// NB_CFG.
        pub nb_cfg: U64 as "register",
        /// The microcode revision that it reads.
        pub microcode_revision: U32 as "number",
        /// Zero.
        pub zero: U32 as "zero",
    }

    /// Registers that stay in the CPU across exits.
    pub struct Extended since 2 {
        /// DR0 to DR3.
        pub debug_addresses: [U64; 4] as "register",
        /// TSC_AUX.
        pub tsc_aux: U64 as "register",
        /// Components of XCR0 that the area holds.
        pub components: U64 as "register",
        /// A [`AreaFormat`]'s number.
        pub format: U32 as "number",
        /// Zero.
        pub zero: U32 as "zero",
    }

    /// A vCPU's share of a real one, for the scheduler above it.
    pub struct Turn since 2 {
        /// For how long others had its CPUs while it wanted to run.
        pub stolen_ticks: U64 as "ticks",
        /// Time at which it left its CPU; it has waited since if it wants to run.
        pub left_at: U64 as "ticks",
        /// 1 if it wants to run.
        pub wants_to_run: U32 as "flag",
        /// Zero.
        pub zero: U32 as "zero",
    }
}

numbered! {
    /// Virtualization extensions, by [`Extension::kind`].
    pub enum ExtensionKind since 4 {
        /// AMD SVM.
        Svm = 0,
        /// Intel VMX.
        Vmx = 1,
    }
}

numbered! {
    /// Activity of a vCPU.
    pub enum Activity since 2 {
        /// It executes instructions.
        Running = 1,
        /// It has halted and waits for an interrupt.
        Halted = 2,
        /// It has halted with interrupts disabled.
        HaltedForGood = 3,
        /// It waits for a start-up interrupt.
        WaitingForStartup = 4,
    }

    /// Readiness for an NMI.
    pub enum NmiGate since 2 {
        /// It may.
        Open = 1,
        /// The handler of the one before it runs.
        Handler = 2,
        /// The handler's IRET is being executed.
        Returning = 3,
    }

    /// Format of the extended registers in the block's tail.
    pub enum AreaFormat since 2 {
        /// FXSAVE's 512 bytes.
        Fxsave = 1,
        /// XSAVE's standard format.
        Xsave = 2,
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Model-specific registers, as a pure policy: [`classify`] names the part of the machine that answers for a register.
//!
//! | class | answered by |
//! |---|---|
//! | [`MsrClass::OwnedByGuest`] | the CPU: no exit |
//! | APIC base, x2APIC, TSC deadline, EOI flag | the local APIC |
//! | TSC, system time, wall clock | the guest's clock |
//! | steal time | the CPU's share of the real one |
//! | [`MsrClass::Counters`]: performance counters, DEBUGCTL | [`pmu::guest::VirtualPmu`], where the guest has one |
//! | SPEC_CTRL | the CPU's state, where CPUID shows it; PRED_CMD is written without an exit then |
//! | DE_CFG | the machine: whether LFENCE serializes here |
//! | EFER, PAT | the CPU's state, after [`check_efer`] and [`check_pat`] |
//! | [`MsrClass::Plain`] | [`PlainMsrs`] here: constants, and values that only read back what was written |
//! | [`MsrClass::Absent`] | none: #GP |
//!
//! Writes to a plain register are as restricted as Linux allows: writing the present value always works, changing a bit
//! that means nothing here is #GP. (AMD APM vol. 2, appendix A; Intel SDM vol. 4.)

pub mod number;
mod plain;

use pmu::guest::is_register;

use crate::cpu::cpuid::Speculation;
use crate::devices::GeneralProtection;
use crate::vcpu::{cr0, efer};

use number::*;

pub use plain::{MsrState, PlainMsr, PlainMsrs};

/// Registers that the guest reads and writes without an exit: the CPU switches them with the guest.
pub const OWNED_BY_GUEST: &[u32] =
    &[FS_BASE, GS_BASE, KERNEL_GS_BASE, STAR, LSTAR, CSTAR, SFMASK, SYSENTER_CS, SYSENTER_ESP, SYSENTER_EIP, TSC_AUX];

/// The page attribute table after reset (AMD APM vol. 2, section 7.8.2).
pub const PAT_RESET: u64 = 0x0007_0406_0007_0406;

/// DE_CFG: LFENCE serializes.
pub const DE_CFG_LFENCE_SERIALIZES: u64 = 1 << 1;

/// The part that answers for a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MsrClass {
    /// The CPU itself; see [`OWNED_BY_GUEST`].
    OwnedByGuest,
    /// The local APIC: its base and mode.
    ApicBase,
    /// The local APIC: a register, numbered from 0 (the MSR less 0x800).
    X2Apic(u8),
    /// The local APIC: the TSC deadline of its timer.
    TscDeadline,
    /// The local APIC: where the guest checks whether an EOI is needed (a [`crate::cpu::kvmclock::SharedArea`]).
    PvEoi,
    /// The time stamp counter: a write moves the guest's offset.
    Tsc,
    /// The paravirtual clock: a CPU's area ([`crate::cpu::kvmclock::VcpuClock`]).
    SystemTime,
    /// The paravirtual clock: where the wall clock is wanted ([`crate::cpu::kvmclock::write_wall_clock`]).
    WallClock,
    /// Stolen time: the address of the area for it ([`crate::cpu::steal_time::StealTime`]).
    StealTime,
    /// EFER: [`check_efer`].
    Efer,
    /// The page attribute table: [`check_pat`].
    Pat,
    /// Speculation control; present where CPUID shows it.
    SpecCtrl,
    /// AMD's decoder configuration: whether LFENCE serializes.
    DeCfg,
    /// A performance counter's, DEBUGCTL among them: the guest's counters, where it has some.
    Counters,
    /// [`PlainMsrs`].
    Plain(PlainMsr),
    /// No part of the machine has it: #GP.
    Absent,
}

/// The part that answers for the register with this number.
#[inline]
pub const fn classify(msr: u32) -> MsrClass {
    match msr {
        X2APIC_FIRST..=X2APIC_LAST => MsrClass::X2Apic((msr - X2APIC_FIRST) as u8),
        TSC_DEADLINE => MsrClass::TscDeadline,
        FS_BASE | GS_BASE | KERNEL_GS_BASE | TSC_AUX | STAR | LSTAR | CSTAR | SFMASK => MsrClass::OwnedByGuest,
        SYSENTER_CS | SYSENTER_ESP | SYSENTER_EIP => MsrClass::OwnedByGuest,
        TSC => MsrClass::Tsc,
        APIC_BASE => MsrClass::ApicBase,
        EFER => MsrClass::Efer,
        PAT => MsrClass::Pat,
        KVM_SYSTEM_TIME | KVM_SYSTEM_TIME_OLD => MsrClass::SystemTime,
        KVM_WALL_CLOCK | KVM_WALL_CLOCK_OLD => MsrClass::WallClock,
        KVM_STEAL_TIME => MsrClass::StealTime,
        KVM_PV_EOI => MsrClass::PvEoi,
        SPEC_CTRL => MsrClass::SpecCtrl,
        DE_CFG => MsrClass::DeCfg,
        _ if is_register(msr) => MsrClass::Counters,
        _ => match plain::classify(msr) {
            Some(plain) => MsrClass::Plain(plain),
            None => MsrClass::Absent,
        },
    }
}

/// Returns what EFER becomes when the guest writes `wanted` (AMD APM vol. 2, section 3.1.7): `supported` comes from
/// [`crate::cpu::cpuid::CpuidTable::supported_efer`], so SVME is #GP. LMA is the CPU's and stays as it is.
pub const fn check_efer(current: u64, wanted: u64, cr0: u64, supported: u64) -> Result<u64, GeneralProtection> {
    let is_reserved = wanted & !supported != 0 || wanted & efer::SVME != 0;
    let toggles_long_mode = (current ^ wanted) & efer::LME != 0 && cr0 & cr0::PG != 0;
    if is_reserved || toggles_long_mode {
        return Err(GeneralProtection);
    }
    Ok(wanted & !efer::LMA | current & efer::LMA)
}

/// Refuses bits of SPEC_CTRL that the guest was not shown, and the register where there is none.
pub fn check_spec_ctrl(value: u64, offered: Speculation) -> Result<(), GeneralProtection> {
    if offered.spec_ctrl != 0 && value & !offered.spec_ctrl == 0 { Ok(()) } else { Err(GeneralProtection) }
}

/// Refuses memory types that the page attribute table does not know (AMD APM vol. 2, table 7-9).
pub fn check_pat(value: u64) -> Result<(), GeneralProtection> {
    let is_type = |memory_type: &u8| matches!(memory_type, 0 | 1 | 4..=7);
    if value.to_le_bytes().iter().all(is_type) { Ok(()) } else { Err(GeneralProtection) }
}

#[cfg(test)]
mod tests;

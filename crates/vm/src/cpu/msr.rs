// SPDX-License-Identifier: MIT OR Apache-2.0
//! Model-specific registers, as a pure policy: [`classify`] states who answers for a register.
//!
//! | class | who answers |
//! |---|---|
//! | [`MsrClass::OwnedByGuest`] | the CPU: no exit |
//! | APIC base, x2APIC, TSC deadline, EOI flag | the local APIC |
//! | TSC, system time, wall clock | the guest's clock |
//! | steal time | the CPU's share of the real one |
//! | DEBUGCTL, performance counters | [`pmu::guest::VirtualPmu`], where the guest has one |
//! | SPEC_CTRL | the CPU's state, where CPUID shows it; PRED_CMD is written without an exit then |
//! | DE_CFG | the machine: whether LFENCE serializes here |
//! | EFER, PAT | the CPU's state, after [`check_efer`] and [`check_pat`] |
//! | [`MsrClass::Plain`] | [`PlainMsrs`] here: constants, and values that only read back what was written |
//! | [`MsrClass::Absent`] | nobody else: #GP |
//!
//! What a guest may write to a plain register is as narrow as Linux allows: writing what is already there always works,
//! changing a bit that means nothing here is #GP. (AMD APM vol. 2, appendix A; Intel SDM vol. 4.)

use crate::cpu::cpuid::Speculation;
use crate::devices::{GeneralProtection, StateError};
use crate::vcpu::{cr0, efer};

#[cfg(test)]
mod tests;

/// The numbers of the registers that are known here.
#[allow(missing_docs)]
pub mod number {
    pub const TSC: u32 = 0x10;
    pub const KVM_WALL_CLOCK_OLD: u32 = 0x11;
    pub const KVM_SYSTEM_TIME_OLD: u32 = 0x12;
    pub const PLATFORM_ID: u32 = 0x17;
    pub const APIC_BASE: u32 = 0x1b;
    pub const SPEC_CTRL: u32 = 0x48;
    pub const PRED_CMD: u32 = 0x49;
    pub const MICROCODE_REVISION: u32 = 0x8b;
    pub const PLATFORM_INFO: u32 = 0xce;
    pub const MTRR_CAP: u32 = 0xfe;
    pub const SYSENTER_CS: u32 = 0x174;
    pub const SYSENTER_ESP: u32 = 0x175;
    pub const SYSENTER_EIP: u32 = 0x176;
    pub const MCG_CAP: u32 = 0x179;
    pub const MCG_STATUS: u32 = 0x17a;
    pub const MISC_ENABLE: u32 = 0x1a0;
    pub const DEBUG_CTL: u32 = 0x1d9;
    pub const PAT: u32 = 0x277;
    pub const MTRR_DEFAULT_TYPE: u32 = 0x2ff;
    pub const TSC_DEADLINE: u32 = 0x6e0;
    pub const X2APIC_FIRST: u32 = 0x800;
    pub const X2APIC_LAST: u32 = 0x8ff;
    pub const KVM_WALL_CLOCK: u32 = 0x4b56_4d00;
    pub const KVM_SYSTEM_TIME: u32 = 0x4b56_4d01;
    pub const KVM_STEAL_TIME: u32 = 0x4b56_4d03;
    pub const KVM_PV_EOI: u32 = 0x4b56_4d04;
    pub const EFER: u32 = 0xc000_0080;
    pub const STAR: u32 = 0xc000_0081;
    pub const LSTAR: u32 = 0xc000_0082;
    pub const CSTAR: u32 = 0xc000_0083;
    pub const SFMASK: u32 = 0xc000_0084;
    pub const FS_BASE: u32 = 0xc000_0100;
    pub const GS_BASE: u32 = 0xc000_0101;
    pub const KERNEL_GS_BASE: u32 = 0xc000_0102;
    pub const TSC_AUX: u32 = 0xc000_0103;
    pub const PERF_CTL0: u32 = 0xc001_0000;
    pub const PERF_CTR3: u32 = 0xc001_0007;
    pub const SYSCFG: u32 = 0xc001_0010;
    pub const HWCR: u32 = 0xc001_0015;
    pub const TOP_MEM: u32 = 0xc001_001a;
    pub const TOP_MEM2: u32 = 0xc001_001d;
    pub const NB_CFG: u32 = 0xc001_001f;
    pub const INT_PENDING: u32 = 0xc001_0055;
    pub const MMIO_CONFIG_BASE: u32 = 0xc001_0058;
    pub const SMM_ADDR: u32 = 0xc001_0112;
    pub const VM_CR: u32 = 0xc001_0114;
    pub const BU_CFG2: u32 = 0xc001_102a;
    pub const DE_CFG: u32 = 0xc001_1029;
}
use number::*;

/// Registers that the guest reads and writes without an exit: the CPU switches them with the guest.
pub const OWNED_BY_GUEST: &[u32] =
    &[FS_BASE, GS_BASE, KERNEL_GS_BASE, STAR, LSTAR, CSTAR, SFMASK, SYSENTER_CS, SYSENTER_ESP, SYSENTER_EIP, TSC_AUX];

/// The page attribute table after reset (AMD APM vol. 2, section 7.8.2).
pub const PAT_RESET: u64 = 0x0007_0406_0007_0406;

/// MTRRcap: no variable and no fixed ranges; write-combining exists. Nested paging ignores MTRRs anyway.
const MTRR_CAP_VALUE: u64 = 1 << 10;
/// MTRR default type: write-back, enabled.
const MTRR_DEFAULT_TYPE_RESET: u64 = 1 << 11 | 6;
const MTRR_DEFAULT_TYPE_WRITABLE: u64 = 1 << 11 | 1 << 10 | 0xff;
/// Fast strings; no branch trace store, no precise sampling.
const MISC_ENABLE_RESET: u64 = 1 << 12 | 1 << 11 | 1;
const MISC_ENABLE_WRITABLE: u64 = 1;
/// HWCR: the TSC counts at the P0 frequency.
const HWCR_RESET: u64 = 1 << 24;
/// HWCR bits that kernels set for errata or for injecting machine checks: they change nothing here.
const HWCR_WRITABLE: u64 = 1 << 18 | 1 << 8 | 1 << 6 | 1 << 3;
/// NB_CFG: extended configuration space through port 0xcf8.
const NB_CFG_WRITABLE: u64 = 1 << 46;
/// MCG_STATUS: RIPV, EIPV, MCIP.
const MCG_STATUS_WRITABLE: u64 = 0b111;
/// VM_CR: SVM disabled, and locked so.
const VM_CR_VALUE: u64 = 1 << 4 | 1 << 3;
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
    /// Where stolen time is wanted ([`crate::cpu::steal_time::StealTime`]).
    StealTime,
    /// EFER: [`check_efer`].
    Efer,
    /// The page attribute table: [`check_pat`].
    Pat,
    /// What speculation is held back: where CPUID shows it.
    SpecCtrl,
    /// AMD's decoder configuration: whether LFENCE serializes.
    DeCfg,
    /// DEBUGCTL: what an overflow of a performance counter does is all that there is of it.
    DebugControl,
    /// [`PlainMsrs`].
    Plain(PlainMsr),
    /// A performance counter's where the guest has these, else nobody's: #GP.
    Absent,
}

/// A register that only holds a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainMsr {
    /// Reads as this; only this may be written.
    Constant(u64),
    /// The microcode revision (in the upper half too, where Intel has it). Intel's kernels write zero before reading.
    MicrocodeRevision,
    /// Machine-check status; there are no banks.
    McgStatus,
    /// Intel's miscellaneous enables.
    MiscEnable,
    /// Memory type outside of MTRR ranges.
    MtrrDefaultType,
    /// AMD's hardware configuration.
    Hwcr,
    /// AMD's northbridge configuration.
    NbCfg,
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
        DEBUG_CTL => MsrClass::DebugControl,
        SPEC_CTRL => MsrClass::SpecCtrl,
        DE_CFG => MsrClass::DeCfg,
        _ => match classify_plain(msr) {
            Some(plain) => MsrClass::Plain(plain),
            None => MsrClass::Absent,
        },
    }
}

const fn classify_plain(msr: u32) -> Option<PlainMsr> {
    Some(match msr {
        MICROCODE_REVISION => PlainMsr::MicrocodeRevision,
        MCG_STATUS => PlainMsr::McgStatus,
        MISC_ENABLE => PlainMsr::MiscEnable,
        MTRR_DEFAULT_TYPE => PlainMsr::MtrrDefaultType,
        HWCR => PlainMsr::Hwcr,
        NB_CFG => PlainMsr::NbCfg,
        MTRR_CAP => PlainMsr::Constant(MTRR_CAP_VALUE),
        VM_CR => PlainMsr::Constant(VM_CR_VALUE),
        PLATFORM_ID | PLATFORM_INFO | MCG_CAP => PlainMsr::Constant(0),
        SYSCFG | TOP_MEM | TOP_MEM2 | INT_PENDING | MMIO_CONFIG_BASE | SMM_ADDR | BU_CFG2 => PlainMsr::Constant(0),
        _ => return None,
    })
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

/// The values of one CPU's plain registers, as they are carried to the next image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct MsrState {
    pub microcode_revision: u32,
    pub mcg_status: u64,
    pub misc_enable: u64,
    pub mtrr_default_type: u64,
    pub hwcr: u64,
    pub nb_cfg: u64,
}

/// One CPU's plain registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainMsrs {
    state: MsrState,
}

impl PlainMsrs {
    /// The registers after reset, with the host's microcode revision.
    pub const fn new(microcode_revision: u32) -> Self {
        Self {
            state: MsrState {
                microcode_revision,
                mcg_status: 0,
                misc_enable: MISC_ENABLE_RESET,
                mtrr_default_type: MTRR_DEFAULT_TYPE_RESET,
                hwcr: HWCR_RESET,
                nb_cfg: 0,
            },
        }
    }

    /// Returns what RDMSR returns.
    pub const fn read(&self, msr: PlainMsr) -> u64 {
        match msr {
            PlainMsr::Constant(value) => value,
            PlainMsr::MicrocodeRevision => {
                let revision = self.state.microcode_revision as u64;
                revision << 32 | revision
            }
            PlainMsr::McgStatus => self.state.mcg_status,
            PlainMsr::MiscEnable => self.state.misc_enable,
            PlainMsr::MtrrDefaultType => self.state.mtrr_default_type,
            PlainMsr::Hwcr => self.state.hwcr,
            PlainMsr::NbCfg => self.state.nb_cfg,
        }
    }

    /// Answers WRMSR.
    pub fn write(&mut self, msr: PlainMsr, value: u64) -> Result<(), GeneralProtection> {
        check_plain(msr, self.read(msr), value)?;
        match msr {
            PlainMsr::Constant(_) | PlainMsr::MicrocodeRevision => {}
            PlainMsr::McgStatus => self.state.mcg_status = value,
            PlainMsr::MiscEnable => self.state.misc_enable = value,
            PlainMsr::MtrrDefaultType => self.state.mtrr_default_type = value,
            PlainMsr::Hwcr => self.state.hwcr = value,
            PlainMsr::NbCfg => self.state.nb_cfg = value,
        }
        Ok(())
    }

    /// The state for the next image.
    pub const fn state(&self) -> MsrState {
        self.state
    }

    /// Registers from their saved state: only values that a guest could have written.
    pub fn from_state(state: &MsrState) -> Result<Self, StateError> {
        let mut registers = Self::new(state.microcode_revision);
        for (field, msr, value) in [
            ("msr.mcg_status", PlainMsr::McgStatus, state.mcg_status),
            ("msr.misc_enable", PlainMsr::MiscEnable, state.misc_enable),
            ("msr.mtrr_default_type", PlainMsr::MtrrDefaultType, state.mtrr_default_type),
            ("msr.hwcr", PlainMsr::Hwcr, state.hwcr),
            ("msr.nb_cfg", PlainMsr::NbCfg, state.nb_cfg),
        ] {
            let refused = |_| StateError { field, reason: "a reserved bit is set" };
            registers.write(msr, value).map_err(refused)?;
        }
        Ok(registers)
    }
}

/// Whether `value` may follow `current`.
const fn check_plain(msr: PlainMsr, current: u64, value: u64) -> Result<(), GeneralProtection> {
    let writable = match msr {
        PlainMsr::Constant(_) => 0,
        PlainMsr::MicrocodeRevision if value == 0 => return Ok(()),
        PlainMsr::MicrocodeRevision => 0,
        PlainMsr::McgStatus => MCG_STATUS_WRITABLE,
        PlainMsr::MiscEnable => MISC_ENABLE_WRITABLE,
        PlainMsr::MtrrDefaultType if !matches!(value & 0xff, 0 | 1 | 4..=6) => return Err(GeneralProtection),
        PlainMsr::MtrrDefaultType => MTRR_DEFAULT_TYPE_WRITABLE,
        PlainMsr::Hwcr => HWCR_WRITABLE,
        PlainMsr::NbCfg => NB_CFG_WRITABLE,
    };
    if (current ^ value) & !writable == 0 { Ok(()) } else { Err(GeneralProtection) }
}

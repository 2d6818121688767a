// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers that only hold a value.

use super::number::*;
use crate::devices::{GeneralProtection, StateError};

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

/// The plain register with this number, if it is one.
pub(super) const fn classify(msr: u32) -> Option<PlainMsr> {
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

    /// Returns the result of RDMSR.
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

/// Checks that `value` may follow `current`.
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! One row per vulnerability, named as in Linux's `/sys/devices/system/cpu/vulnerabilities`; rows that Linux has no
//! file for come last. Each vendor has a column; so far there is AMD's, in `amd.rs`.

use core::str::FromStr;

use crate::amd::{self, Column};
use crate::status::Status;
use crate::{Actions, Cpu, Vendor};

/// A vulnerability.
pub struct Row {
    /// Linux's name of its file.
    pub name: &'static str,
    /// Source of its facts.
    pub source: &'static str,
    pub(crate) amd: &'static Column,
}

/// Rows of [`TABLE`].
pub const ROWS: usize = 20;

macro_rules! rows {
    ($($name:literal, $source:literal, $amd:expr;)*) => {
        [$(Row { name: $name, source: $source, amd: &$amd }),*]
    };
}

/// Every vulnerability that is known here. "Not affected" rows: AMD's bulletins and AMD, "Speculation behavior in AMD
/// micro-architectures" (2019), section 2.
pub const TABLE: [Row; ROWS] = rows! {
    "gather_data_sampling", "Intel-SA-00828, CVE-2022-40982", amd::NEVER;
    "indirect_target_selection", "Intel-SA-01153, CVE-2024-28956", amd::NEVER;
    "itlb_multihit", "Intel-SA-00210, CVE-2018-12207", amd::NEVER;
    "l1tf", "Intel-SA-00161, CVE-2018-3646", amd::NEVER;
    "mds", "Intel-SA-00233, CVE-2018-12126", amd::NEVER;
    "meltdown", "CVE-2017-5754", amd::NEVER;
    "mmio_stale_data", "Intel-SA-00615, CVE-2022-21123", amd::NEVER;
    "reg_file_data_sampling", "Intel-SA-00898, CVE-2023-28746", amd::NEVER;
    "retbleed", "AMD-SB-1037, CVE-2022-29900", amd::RETBLEED;
    "spec_rstack_overflow", "AMD-SB-7005, CVE-2023-20569", amd::SPEC_RSTACK_OVERFLOW;
    "spec_store_bypass", "AMD, Speculative store bypass disable (124441), CVE-2018-3639", amd::SPEC_STORE_BYPASS;
    "spectre_v1", "AMD, Software techniques for managing speculation (90343), CVE-2017-5753", amd::SPECTRE_V1;
    "spectre_v2", "AMD, Software techniques for managing speculation (90343), CVE-2017-5715", amd::SPECTRE_V2;
    "srbds", "Intel-SA-00320, CVE-2020-0543", amd::NEVER;
    "tsa", "AMD-SB-7036, CVE-2024-36350, CVE-2024-36357", amd::TSA;
    "tsx_async_abort", "Intel-SA-00270, CVE-2019-11135", amd::NEVER;
    "vmscape", "AMD-SB-7046, CVE-2025-40300", amd::VMSCAPE;
    "div0", "AMD-SB-7007, CVE-2023-20588", amd::DIV0;
    "smt_rsb", "AMD-SB-1045, CVE-2022-27672", amd::SMT_RSB;
    "zenbleed", "AMD-SB-7008, CVE-2023-20593", amd::ZENBLEED;
};

/// `mitigations`: whether vulnerabilities are mitigated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Each that the CPU has.
    #[default]
    Auto,
    /// None.
    Off,
}

impl FromStr for Mode {
    type Err = UnknownValue;

    fn from_str(value: &str) -> Result<Self, UnknownValue> {
        match value {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Off),
            _ => Err(UnknownValue),
        }
    }
}

/// The option does not take this value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownValue;

/// Status of a host with respect to all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assessment {
    /// The CPU.
    pub cpu: Cpu,
    /// By row of [`TABLE`].
    pub statuses: [Status; ROWS],
    /// Measures that are taken.
    pub actions: Actions,
}

/// Assesses a CPU.
pub fn assess(cpu: &Cpu, mode: Mode) -> Assessment {
    let lfence =
        if cpu.has_de_cfg && !cpu.has_serializing_lfence() { Actions::SERIALIZE_LFENCE } else { Actions::empty() };
    if cpu.vendor == Vendor::Other {
        let unknown = Status::Unknown("there is no table for this vendor");
        return Assessment { cpu: *cpu, statuses: [unknown; ROWS], actions: Actions::empty() };
    }
    let affected = || TABLE.iter().map(|row| row.amd).filter(|column| (column.affects)(cpu));
    let needed = affected().fold(lfence, |all, column| all | (column.needs)(cpu)).reduced();
    let actions = if mode == Mode::Off { needed & Actions::ALWAYS } else { needed };
    let mut statuses = [Status::NotAffected; ROWS];
    for (status, row) in statuses.iter_mut().zip(&TABLE).filter(|(_, row)| (row.amd.affects)(cpu)) {
        *status = match mode {
            Mode::Off => Status::Vulnerable("mitigations=off", ""),
            Mode::Auto => (row.amd.reports)(cpu, actions),
        };
    }
    Assessment { cpu: *cpu, statuses, actions }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's PCI functions, as it reports them.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

/// Progress of a change of a guest's functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PciProgress {
    /// It counts from the guest's next start on.
    NextStart,
    /// The guest has the function now, or has it no more.
    Done,
    /// The guest runs, and was asked to eject the function, which it still has.
    Asked,
}

/// Progress of the survey of the host's functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PciSurvey {
    /// The functions that are probed, and the time.
    pub policy: PciPolicy,
    /// Nothing is left to be probed.
    pub is_complete: bool,
    /// Functions that were probed; those beyond what the host keeps are not listed.
    pub functions: u32,
    /// Cost up to the first guest's first instruction; `None` while there was none.
    pub before_guests: Option<PciCost>,
    /// Cost so far, empty addresses included.
    pub total: PciCost,
}

/// The functions that are probed, and the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PciPolicy {
    /// All, before guests run.
    All,
    /// Those that the operator names, before guests run.
    Allow,
    /// All, once guests run.
    Lazy,
}

impl fmt::Display for PciPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::All => "all",
            Self::Allow => "allow",
            Self::Lazy => "lazy",
        })
    }
}

/// Cost of probing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PciCost {
    /// Configuration registers read or written.
    pub accesses: u32,
    /// Ticks of the time stamp counter.
    pub ticks: u64,
}

/// One function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PciFunction {
    /// Address: segment, bus, device, function.
    pub place: (u16, u8, u8, u8),
    /// Its maker.
    pub vendor: u16,
    /// Device identifier, by its maker.
    pub device: u16,
    /// Class: base class, subclass, programming interface.
    pub class: (u8, u8, u8),
    /// Its revision.
    pub revision: u8,
    /// For a bridge, the bus behind it.
    pub bus_behind: Option<u8>,
    /// Its address ranges.
    pub ranges: Vec<PciRange>,
    /// Identifiers of its capabilities, in its order.
    #[serde(with = "serde_bytes")]
    pub capabilities: Vec<u8>,
    /// Its problems, for people.
    pub problems: Vec<String>,
    /// Cost of probing it.
    pub cost: PciCost,
    /// The guest that it is assigned to: of several, the first one that runs, or else the first one.
    pub owner: Option<String>,
    /// The number of its isolation group, which has one owner; `None` for bridges, and until all functions
    /// are probed.
    pub group: Option<u32>,
    /// Virtual functions that it can have (SR-IOV); `None` if it can have none, and until all functions are probed.
    pub virtual_functions: Option<PciVirtualFunctions>,
}

/// The virtual functions that a function states it can have. None is enabled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PciVirtualFunctions {
    /// The most that it can have; 0 where it states an impossible number.
    pub total: u16,
    /// Addresses of the first and the last one: segment, bus, device, function.
    pub places: Option<[(u16, u8, u8, u8); 2]>,
    /// The reason for which they cannot be used, for people.
    pub problem: Option<String>,
}

/// An address range to which a function answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PciRange {
    /// In the space of ports, else of memory.
    pub is_ports: bool,
    /// Its first address. Its length is not known: finding it out would take the range away from its driver.
    pub address: u64,
}

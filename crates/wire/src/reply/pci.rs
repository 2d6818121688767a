// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the host reports of its PCI functions.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

/// How far the host is with finding out which functions it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PciSurvey {
    /// Which functions are probed, and when.
    pub policy: PciPolicy,
    /// Nothing is left to be probed.
    pub is_complete: bool,
    /// Functions that were probed; those beyond what the host keeps are not listed.
    pub functions: u32,
    /// What had been spent right before the first guest's first instruction; `None` while there was none.
    pub before_guests: Option<PciCost>,
    /// What has been spent so far, on places where nobody is too.
    pub total: PciCost,
}

/// Which functions are probed, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// What looking costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PciCost {
    /// Configuration registers read or written.
    pub accesses: u32,
    /// Ticks of the time stamp counter.
    pub ticks: u64,
}

/// One function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PciFunction {
    /// Where it is: segment, bus, device, function.
    pub place: (u16, u8, u8, u8),
    /// Its maker.
    pub vendor: u16,
    /// What its maker calls it.
    pub device: u16,
    /// What it does: base class, subclass, programming interface.
    pub class: (u8, u8, u8),
    /// Its revision.
    pub revision: u8,
    /// For a bridge, the bus behind it.
    pub bus_behind: Option<u8>,
    /// Its address ranges.
    pub ranges: Vec<PciRange>,
    /// Identifiers of its capabilities, in its order.
    pub capabilities: Vec<u8>,
    /// What is wrong with it.
    pub problems: Vec<String>,
    /// What it cost to find this out.
    pub cost: PciCost,
}

/// An address range to which a function answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PciRange {
    /// In the space of ports, else of memory.
    pub is_ports: bool,
    /// Its first address. Its length is not known: finding it out would take the range away from its driver.
    pub address: u64,
}

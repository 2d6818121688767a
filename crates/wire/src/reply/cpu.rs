// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's CPUs, as it reports them.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

/// One CPU of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CpuInfo {
    /// Its number: 0 boots, the others follow in the firmware's order.
    pub index: u32,
    /// Its local APIC's identifier.
    pub apic_id: u32,
    /// Its state.
    pub state: CpuState,
    /// The reason for its state, where there is more to report. At most [`crate::MAX_REASON_BYTES`].
    pub reason: Option<String>,
    /// Thousandths of the time since it came online in which it had work; `None` unless it is online.
    pub busy_permille: Option<u32>,
    /// The vCPUs that are on it, of guests that run or are paused.
    pub vcpus: Vec<CpuVcpu>,
}

/// State of a CPU of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CpuState {
    /// It takes work.
    Online,
    /// It gives its work away, and will halt.
    Leaving,
    /// It is not used; it can be brought online.
    Offline,
    /// It did not come up, or has not halted; it is not used again before the host starts again.
    Failed,
}

impl fmt::Display for CpuState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Online => "online",
            Self::Leaving => "leaving",
            Self::Offline => "offline",
            Self::Failed => "failed",
        })
    }
}

/// A vCPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CpuVcpu {
    /// Its machine, as the bundle names it.
    pub vm: String,
    /// Its number in its machine.
    pub vcpu: u32,
}

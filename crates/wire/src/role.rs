// SPDX-License-Identifier: MIT OR Apache-2.0
//! Roles of clients, and the role that each request takes. Host, tool and service share this one list.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::RequestBody;

/// The rights of a client. Each role includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// See everything but guests' memory and registers.
    Read,
    /// Start, stop, type to, dump and save guests; add guests of files that the host has, delete and change them; take
    /// CPUs offline and online; assign PCI functions; profile the host.
    Operate,
    /// Send files, restore guests, replace the hypervisor, restart the host, power it off, revoke control keys.
    Update,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Read => "read",
            Self::Operate => "operate",
            Self::Update => "update",
        })
    }
}

impl RequestBody {
    /// Returns the role that a client needs for this request.
    pub fn role(&self) -> Role {
        match self {
            Self::Info
            | Self::VmList { .. }
            | Self::VmPerf { .. }
            | Self::Log { .. }
            | Self::Events { .. }
            | Self::Subscribe(_)
            | Self::SubscribeConsoles { .. }
            | Self::CpuList { .. }
            | Self::CpuPerf { .. }
            | Self::Epitaph { .. }
            | Self::Timeline { .. }
            | Self::PciList { .. }
            | Self::NetList { .. }
            | Self::DiskList { .. }
            | Self::Vulnerabilities
            | Self::Iommus
            | Self::Config { .. }
            | Self::FileList { .. }
            | Self::ControlKeys => Role::Read,
            Self::VmStart { .. }
            | Self::VmStop { .. }
            | Self::VmPause { .. }
            | Self::VmResume { .. }
            | Self::VmReset { .. }
            | Self::VmShutdown { .. }
            | Self::VmHold { .. }
            | Self::VmLayout { .. }
            | Self::VmRegisters { .. }
            | Self::VmMemory { .. }
            | Self::VmSaved { .. }
            | Self::ConsoleInput { .. }
            | Self::CpuOffline { .. }
            | Self::CpuOnline { .. }
            | Self::ProfileBegin { .. }
            | Self::ProfileRead { .. }
            | Self::CaptureBegin { .. }
            | Self::CaptureRead { .. }
            | Self::PciAssign { .. }
            | Self::PciRelease { .. }
            | Self::VmSet { .. }
            | Self::VmDelete { .. }
            | Self::VmCreate { .. }
            | Self::FileRemove { .. } => Role::Operate,
            Self::PowerOff
            | Self::Restart
            | Self::RestartUploaded
            | Self::Update { .. }
            | Self::UpdateUnlessConfirmed { .. }
            | Self::Confirm
            | Self::UploadBegin { .. }
            | Self::UploadData { .. }
            | Self::UploadPacked { .. }
            | Self::UploadDrop
            | Self::VmRestore { .. }
            | Self::PermitDowngrade
            | Self::RevokeControlKey { .. } => Role::Update,
            // Within a session neither is a request: a host refuses them there.
            Self::SessionBegin { .. } | Self::Signed(_) => Role::Update,
        }
    }
}

/// A right over other guests, or over the machine, that no role includes for a client in a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// Type into guests' consoles.
    Console,
    /// Read guests' memory, registers, state and frames.
    Dump,
    /// Assign PCI functions.
    Devices,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Console => "console",
            Self::Dump => "dump",
            Self::Devices => "devices",
        })
    }
}

impl RequestBody {
    /// Returns the right that a client in a guest needs for this request, besides its role.
    pub fn right(&self) -> Option<Right> {
        match self {
            Self::ConsoleInput { .. } => Some(Right::Console),
            Self::VmHold { .. }
            | Self::VmLayout { .. }
            | Self::VmRegisters { .. }
            | Self::VmMemory { .. }
            | Self::VmSaved { .. }
            | Self::CaptureBegin { .. }
            | Self::CaptureRead { .. } => Some(Right::Dump),
            Self::PciAssign { .. } | Self::PciRelease { .. } => Some(Right::Devices),
            _ => None,
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's IOMMUs.

use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Serialize};

/// One IOMMU, as firmware describes it, and whether it isolates the functions behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct IommuUnit {
    /// The specification that it follows.
    pub kind: IommuKind,
    /// The PCI segment of the functions behind it.
    pub segment: u16,
    /// Physical address of its registers.
    pub registers: u64,
    /// The reason for which it isolates nothing; `None` if it does.
    pub problem: Option<String>,
    /// Accesses of functions that it has refused since this image started, as far as it counted them.
    pub refused: u64,
}

/// The kind of an IOMMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum IommuKind {
    /// AMD I/O Virtualization Technology.
    AmdVi,
    /// Intel Virtualization Technology for Directed I/O.
    VtD,
}

impl fmt::Display for IommuKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::AmdVi => "AMD-Vi",
            Self::VtD => "VT-d",
        })
    }
}

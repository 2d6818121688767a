// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of `baton pci`.

use clap::{Args, Subcommand, ValueEnum};

use super::Format;

/// A command for PCI functions.
#[derive(Debug, Subcommand)]
pub enum PciCommand {
    /// List the functions, their isolation groups and guests, the cost of their discovery, and the IOMMUs
    List(Format),
    /// Assign a function to a guest: one that runs gets it at once, another one with its next start
    ///
    /// The assignment lasts until it is released, or the host powers off: then host.toml counts again. Updates and
    /// restarts keep it, but for a restart with another bundle.
    Assign(PciAssign),
    /// Release a function from a guest, which starts without it from now on
    ///
    /// A guest that runs is asked to eject the function, and waited for. That holds for functions that host.toml names,
    /// too, until the host powers off.
    Release(PciRelease),
}

/// The arguments of `baton pci assign`.
#[derive(Debug, Args)]
pub struct PciAssign {
    /// Its address (01:00.0), vendor and device (8086:10d3), or a number among these (8086:10d3#2)
    pub function: String,
    /// The guest, as `baton vm list` shows it
    pub guest: String,
    /// The reset between two owners: `none` assigns a function that cannot be reset
    #[arg(long, value_enum, default_value_t)]
    pub reset: ResetPolicy,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub format: Format,
}

/// The reset of a function between two owners.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ResetPolicy {
    /// One that cannot be reset is refused
    #[default]
    Required,
    /// One that cannot be reset is assigned as it is: only where one guest alone ever has it
    None,
}

/// The arguments of `baton pci release`.
#[derive(Debug, Args)]
pub struct PciRelease {
    /// Its address (01:00.0), vendor and device (8086:10d3), or a number among these (8086:10d3#2)
    pub function: String,
    /// The guest [default: the one that has it, or the only one that it is assigned to]
    pub guest: Option<String>,
    /// Remove it from a running guest without asking that: the guest sees a surprise removal
    #[arg(long)]
    pub force: bool,
    /// Seconds to wait for a guest that runs
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub timeout: u32,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub format: Format,
}

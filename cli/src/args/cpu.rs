// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of `baton cpu`.

use clap::{Args, Subcommand};

use super::Format;

/// A command for CPUs.
#[derive(Debug, Subcommand)]
pub enum CpuCommand {
    /// List the CPUs, with the vCPUs that run on them
    List(Format),
    /// Take a CPU offline: its vCPUs move to others
    Offline(CpuOrder),
    /// Take a CPU online: vCPUs that have it as their home move back
    Online(CpuOrder),
}

/// An order for one CPU.
#[derive(Debug, Args)]
pub struct CpuOrder {
    /// Its number, as `baton cpu list` shows it
    pub cpu: u32,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub format: Format,
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of `baton disk`.

use clap::Subcommand;

use super::Format;

/// A command for disks behind other guests' servers.
#[derive(Debug, Subcommand)]
pub enum DiskCommand {
    /// List all disks: their servers, and the requests and bytes that have been answered
    List(Format),
}

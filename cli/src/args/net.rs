// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of `baton net`.

use clap::{Args, Subcommand};

use super::Format;

/// A command for networks between guests.
#[derive(Debug, Subcommand)]
pub enum NetCommand {
    /// List the ports of all networks, with the frames and bytes that have passed
    List(Format),
    /// Show one network: its ports, their VLANs and rights, and the frames that were dropped, by reason
    Show(NetShow),
}

/// The arguments of `baton net show`.
#[derive(Debug, Args)]
pub struct NetShow {
    /// The network, as `baton net list` shows it
    pub network: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub format: Format,
}

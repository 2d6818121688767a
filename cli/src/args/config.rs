// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of `baton config` and `baton file`.

use clap::Subcommand;

use super::Format;

/// A command for the configuration of a host.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print the configuration that the host has now, changes since its start included, as a host.toml
    Show,
}

/// A command for the files from which guests start.
#[derive(Debug, Subcommand)]
pub enum FileCommand {
    /// List the files, with their sizes and whether a guest needs them
    List(Format),
    /// Free the memory of files that were sent and that no guest needs
    Remove {
        /// The files, as `baton file list` shows them
        #[arg(required = true, value_name = "FILE")]
        names: Vec<String>,
    },
}

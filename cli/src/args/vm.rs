// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of `baton vm`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Format;
use crate::consent::Consent;

/// A command for virtual machines.
#[derive(Debug, Subcommand)]
pub enum VmCommand {
    /// List the virtual machines
    List(Format),
    /// Start a stopped machine
    Start(VmOrder),
    /// Stop a machine at once, as if its power were cut
    Stop(VmEnd),
    /// Pause a machine: its vCPUs halt where they are
    Pause(VmOrder),
    /// Resume a paused machine
    Resume(VmOrder),
    /// Reset a machine: it starts again from its kernel
    Reset(VmEnd),
    /// Write a machine's memory and registers to a core file for gdb and crash; a running one pauses meanwhile
    Dump {
        /// The virtual machine
        vm: String,
        /// The core file [default: the machine's name and .core]
        #[arg(short, long)]
        output: Option<PathBuf>,
    },
    /// Show the exits and performance counters of a machine's vCPUs while it runs
    Perf {
        /// The virtual machine
        vm: String,
        /// Seconds for which to watch it
        #[arg(long, default_value_t = 1.0)]
        seconds: f64,
        /// The output's format.
        #[command(flatten)]
        format: Format,
    },
    /// Connect to a machine's console (Ctrl-] leaves it)
    Console {
        /// The virtual machine
        vm: String,
        /// Once standard input has ended: seconds of silence after which to leave
        #[arg(long, default_value_t = 2.0)]
        linger: f64,
    },
}

/// An order that ends what one virtual machine does.
#[derive(Debug, Args)]
#[allow(missing_docs)]
pub struct VmEnd {
    #[command(flatten)]
    pub order: VmOrder,
    #[command(flatten)]
    pub consent: Consent,
}

/// An order for one virtual machine.
#[derive(Debug, Args)]
pub struct VmOrder {
    /// The virtual machine
    pub vm: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub format: Format,
}

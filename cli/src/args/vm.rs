// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of `baton vm`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Format;
use crate::connection::Address;
use crate::consent::Consent;
use crate::size::Size;

/// A command for virtual machines.
#[derive(Debug, Subcommand)]
pub enum VmCommand {
    /// List the virtual machines
    List(Format),
    /// Start stopped machines
    Start(VmOrder),
    /// Stop machines at once, as if their power were cut
    Stop(VmEnd),
    /// Shut machines down by their power buttons; those that still run after the timeout are stopped
    Shutdown(VmShutdown),
    /// Wait until machines have ended
    Wait(VmWait),
    /// Pause machines: their vCPUs halt where they are
    Pause(VmOrder),
    /// Resume paused machines
    Resume(VmOrder),
    /// Add a machine to the running host and start it; its files are sent once
    Create(VmCreate),
    /// Remove machines that do not run from the host; their memory is free then
    Delete(VmOrder),
    /// Change a machine's settings; those of its next start while it does not run
    Set(VmSet),
    /// Reset machines: they start again from their kernels
    Reset(VmEnd),
    /// Write a machine's memory and registers to a core file for gdb and crash; a running one pauses meanwhile
    Dump {
        /// The virtual machine
        vm: String,
        /// The core file [default: the machine's name and .core]
        #[arg(short, long)]
        output: Option<PathBuf>,
    },
    /// Save a machine in a file, and stop it; `restore` has it go on, on this host or another one
    Save(VmSave),
    /// Have a machine go on from a file that `save` has written
    Restore(VmRestore),
    /// Move a machine to another host, where it goes on
    Migrate(VmMigrate),
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
        /// Once standard input has ended: seconds without output after which to leave
        #[arg(long, default_value_t = 2.0)]
        linger: f64,
    },
}

/// The description of a new virtual machine.
#[derive(Debug, Args)]
pub struct VmCreate {
    /// A host.toml with one [[guest]] that describes it; its other sections are passed over
    #[arg(required_unless_present = "kernel")]
    #[arg(conflicts_with_all = ["name", "kernel", "initrd", "memory", "memory_max"])]
    #[arg(conflicts_with_all = ["vcpus", "cmdline", "networks", "disks"])]
    pub file: Option<PathBuf>,
    /// Its name
    #[arg(long, requires = "kernel")]
    pub name: Option<String>,
    /// The file with its kernel
    #[arg(long, value_name = "FILE", requires_all = ["name", "memory"])]
    pub kernel: Option<PathBuf>,
    /// The file with its initial RAM disk
    #[arg(long, value_name = "FILE", requires = "kernel")]
    pub initrd: Option<PathBuf>,
    /// Its memory, as 512MiB or 2GiB
    #[arg(long, value_name = "SIZE", requires = "kernel")]
    pub memory: Option<Size>,
    /// The memory that it sees, if it is to get what is beyond --memory only when it touches it
    #[arg(long, value_name = "SIZE", requires = "kernel")]
    pub memory_max: Option<Size>,
    /// Its vCPUs [default: 1]
    #[arg(long, value_name = "NUMBER", requires = "kernel")]
    pub vcpus: Option<u32>,
    /// Its kernel's command line
    #[arg(long, value_name = "TEXT", requires = "kernel")]
    pub cmdline: Option<String>,
    /// A network of the host that it gets a device on; give it again for more
    #[arg(long = "network", value_name = "NAME", requires = "kernel")]
    pub networks: Vec<String>,
    /// A disk: the export of the NBD server in a guest of the host; give it again for more
    #[arg(long = "disk", value_name = "GUEST:EXPORT", requires = "kernel")]
    pub disks: Vec<String>,
    /// Leave it stopped
    #[arg(long)]
    pub no_start: bool,
}

/// Settings of a virtual machine.
#[derive(Debug, Args)]
pub struct VmSet {
    /// The virtual machine
    pub vm: String,
    /// Its share where several vCPUs have one CPU, from 1 to 1024; at once
    #[arg(long, value_name = "NUMBER")]
    pub weight: Option<u32>,
    /// The most of one CPU's time in percent that its vCPUs together get, up to 51200, or 0 for as much as there is; at
    /// once
    #[arg(long, value_name = "PERCENT")]
    pub cap: Option<u32>,
    /// The host's action when its kernel has panicked or hangs: throttle, stop, reset, dump or ignore
    #[arg(long, value_name = "ACTION")]
    pub on_panic: Option<String>,
    /// Whether it starts with the host: true or false
    #[arg(long, value_name = "BOOL")]
    pub autostart: Option<bool>,
    /// Its vCPUs, from 1 to 512; while it does not run
    #[arg(long, value_name = "NUMBER")]
    pub vcpus: Option<u32>,
    /// Its memory, as 512MiB or 2GiB, or, with memory on demand, the part that it has in any case; while it does not
    /// run
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Size>,
    /// The memory that it sees and has once it touches it, not less than its memory; as much: it has all of it from its
    /// start; while it does not run
    #[arg(long, value_name = "SIZE", conflicts_with = "memory")]
    pub memory_max: Option<Size>,
}

/// The virtual machines that an order is for.
#[derive(Clone, Debug, Args)]
pub struct Vms {
    /// The virtual machines
    #[arg(required_unless_present = "all", value_name = "VM")]
    pub names: Vec<String>,
    /// All that are in a state for it
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
}

/// An order that ends the work of virtual machines.
#[derive(Debug, Args)]
#[allow(missing_docs)]
pub struct VmEnd {
    #[command(flatten)]
    pub order: VmOrder,
    #[command(flatten)]
    pub consent: Consent,
}

/// The end of virtual machines in order.
#[derive(Debug, Args)]
#[allow(missing_docs)]
pub struct VmShutdown {
    #[command(flatten)]
    pub vms: Vms,
    /// Seconds after which a machine that still runs is stopped, as if its power were cut
    #[arg(long, value_name = "SECONDS", default_value_t = 90)]
    pub timeout: u32,
    #[command(flatten)]
    pub consent: Consent,
    #[command(flatten)]
    pub format: Format,
}

/// A wait for the end of virtual machines.
#[derive(Debug, Args)]
#[allow(missing_docs)]
pub struct VmWait {
    #[command(flatten)]
    pub vms: Vms,
    /// Seconds after which the wait fails [default: none]
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u32>,
    #[command(flatten)]
    pub format: Format,
}

/// An order for virtual machines.
#[derive(Debug, Args)]
#[allow(missing_docs)]
pub struct VmOrder {
    #[command(flatten)]
    pub vms: Vms,
    #[command(flatten)]
    pub format: Format,
}

/// A virtual machine that is saved.
#[derive(Debug, Args)]
pub struct VmSave {
    /// The virtual machine
    pub vm: String,
    /// The file
    pub file: PathBuf,
    /// Let it run on, instead of stopping it: for a machine without disks, which would be newer than the file
    #[arg(long)]
    pub resume: bool,
    /// Send its memory over a serial line, however long that takes
    #[arg(long)]
    pub slow: bool,
}

/// A virtual machine that is moved.
#[derive(Debug, Args)]
pub struct VmMigrate {
    /// The virtual machine
    pub vm: String,
    /// The address of the other host, as --connect has it
    #[arg(long, value_name = "ADDRESS")]
    pub to: Address,
    /// Its disks are the same ones at the other host, and no guest uses them there
    #[arg(long)]
    pub same_disks: bool,
    /// The folder of a file for its memory, which is removed again [default: that for temporary files]
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// Send its memory over a serial line, however long that takes
    #[arg(long)]
    pub slow: bool,
}

/// A virtual machine that goes on from a file.
#[derive(Debug, Args)]
pub struct VmRestore {
    /// The file
    pub file: PathBuf,
    /// The name of the machine that goes on from it [default: that of the one that was saved]
    #[arg(long = "as", value_name = "NAME")]
    pub name: Option<String>,
    /// Send its memory over a serial line, however long that takes
    #[arg(long)]
    pub slow: bool,
}

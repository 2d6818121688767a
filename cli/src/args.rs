// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line.

mod config;
mod cpu;
mod disk;
mod image;
mod net;
mod pci;
mod perf;
mod records;
mod target;
mod timeline;
mod top;
mod vm;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, value_parser};
use clap_complete::Shell;
use wire::MAX_CONFIRM_SECONDS;

pub use self::config::{ConfigCommand, FileCommand};
pub use self::cpu::{CpuCommand, CpuOrder};
pub use self::disk::DiskCommand;
pub use self::image::{ImageCommand, KeyCommand};
pub use self::net::{NetCapture, NetCommand, NetShow};
pub use self::pci::{PciAssign, PciCommand, PciRelease, ResetPolicy};
pub use self::perf::{PerfArgs, PerfCommand};
pub use self::records::{LogArgs, RecordArgs};
pub use self::target::Target;
pub use self::timeline::TimelineArgs;
pub use self::top::TopArgs;
pub use self::vm::{VmCommand, VmCreate, VmEnd, VmMigrate, VmOrder, VmRestore, VmSave, VmSet, VmShutdown, VmWait, Vms};
use crate::consent::Consent;

/// Operate hosts of Baton, the hypervisor that can be replaced while guests run.
#[derive(Debug, Parser)]
#[command(name = "baton", version, arg_required_else_help = true)]
pub struct Cli {
    /// The host.
    #[command(flatten)]
    pub target: Target,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Build a boot bundle from a host.toml
    Bundle {
        /// The host.toml
        config: PathBuf,
        /// The file to write the bundle to
        #[arg(short, long)]
        output: PathBuf,
        /// Sign it with the secret key in this file (`baton key new`): a running host with keys takes no other
        #[arg(long, value_name = "KEY")]
        sign: Option<PathBuf>,
    },
    /// Power off a running host
    Down {
        /// Consent to the end of guests.
        #[command(flatten)]
        consent: Consent,
        /// Seconds until a host that does not power off is ended by force
        #[arg(long, default_value_t = 30)]
        timeout: u64,
    },
    /// Virtual machines of a running host
    Vm {
        /// The command.
        #[command(subcommand)]
        command: VmCommand,
    },
    /// CPUs of a running host
    Cpu {
        /// The command.
        #[command(subcommand)]
        command: CpuCommand,
    },
    /// PCI functions of a running host: list them, or change which guests they are assigned to
    Pci {
        /// The output's format.
        #[command(flatten)]
        format: Format,
        /// The command [default: list]
        #[command(subcommand)]
        command: Option<PciCommand>,
    },
    /// The configuration of a running host
    Config {
        /// The command.
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Files from which the guests of a running host start
    File {
        /// The command.
        #[command(subcommand)]
        command: FileCommand,
    },
    /// Disks of a running host's guests, with their storage in other guests
    Disk {
        /// The command.
        #[command(subcommand)]
        command: DiskCommand,
    },
    /// Networks between the guests of a running host
    Net {
        /// The command.
        #[command(subcommand)]
        command: NetCommand,
    },
    /// A running host's log
    Log(LogArgs),
    /// A running host's events
    Events(RecordArgs),
    /// Replace a running host's image by another, without firmware; its guests start again
    Restart {
        /// A bundle (or a host.toml to build one from) to send to the host first, with the image and the guests to go
        /// on with [default: the host's own]
        #[arg(conflicts_with = "image")]
        bundle: Option<PathBuf>,
        /// An image to send to the host first; its bundle stays
        #[arg(long, value_name = "FILE")]
        image: Option<PathBuf>,
        /// Go to an image of a lower security version, too, if the host's policy permits that
        #[arg(long)]
        allow_downgrade: bool,
        /// Consent to the end of guests.
        #[command(flatten)]
        consent: Consent,
        /// The output's format.
        #[command(flatten)]
        format: Format,
    },
    /// Replace a running host's image while its guests run, by the one in its bundle or by one that is sent
    Update {
        /// A bundle (or a host.toml to build one from) to send to the host first, with the image; its guests must be
        /// the host's [default: the host's own]
        #[arg(conflicts_with = "image")]
        bundle: Option<PathBuf>,
        /// An image to send to the host first; its bundle stays
        #[arg(long, value_name = "FILE")]
        image: Option<PathBuf>,
        /// Go back to the image that ran before the last update
        #[arg(long, conflicts_with_all = ["bundle", "image"])]
        previous: bool,
        /// Go to an image of a lower security version, too, if the host's policy permits that
        #[arg(long)]
        allow_downgrade: bool,
        /// Only check and rehearse the update while guests run; replaces nothing.
        #[arg(long)]
        dry_run: bool,
        /// Have the host return to the image before by itself, guests running, unless a client confirms the update so
        /// many seconds after it. This command does so once it has reached the new image over a connection of its own
        #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u32).range(1..=i64::from(MAX_CONFIRM_SECONDS)))]
        confirm_within: Option<u32>,
        /// Leave the confirmation to `baton confirm`
        #[arg(long, requires = "confirm_within")]
        no_confirm: bool,
        /// The output's format.
        #[command(flatten)]
        format: Format,
    },
    /// Confirm the last update of a running host: its image stays
    Confirm,
    /// Describe, check and sign an image of Baton, and convert it for loaders
    Image {
        /// The command.
        #[command(subcommand)]
        command: ImageCommand,
    },
    /// Keys that images and requests are signed with
    Key {
        /// The command.
        #[command(subcommand)]
        command: KeyCommand,
    },
    /// Draw where a running host spends its time: a flame graph of its CPUs, guests' and idle time included
    Perf(PerfArgs),
    /// Show how long each part of a running host's boot and restarts took, or of a Linux boot
    Timeline(TimelineArgs),
    /// Show a running host's CPUs and guests live: CPU time, waiting vCPUs, exits by kind, memory
    Top(TopArgs),
    /// Pass bytes between standard input and output and a host: the command that ssh: runs on the far side
    Relay,
    /// Describe a running host
    Info {
        /// Its exposure to speculation vulnerabilities instead, as Linux's /sys/devices/system/cpu/vulnerabilities has
        /// it
        #[arg(long)]
        vulnerabilities: bool,
        /// The output's format.
        #[command(flatten)]
        format: Format,
    },
    /// Share hosts: a JSON API, metrics and a page for browsers (`baton serve --help`)
    #[command(disable_help_flag = true)]
    Serve {
        /// The arguments of the program baton-serve, which is beside this one
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        arguments: Vec<OsString>,
    },
    /// Print the script by which a shell completes this program's commands and options
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write this program's manual pages
    Man {
        /// The folder to write them to
        folder: PathBuf,
    },
    /// Add functions and lines to the backtraces in a host's log
    Symbolize {
        /// The log; standard input where none is named
        log: Option<PathBuf>,
        /// The hypervisor's image
        #[arg(long)]
        image: Option<PathBuf>,
    },
}

/// The format: for people or for programs.
#[derive(Clone, Copy, Debug, Args)]
pub struct Format {
    /// Print JSON, one object per line
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}

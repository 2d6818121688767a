// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line.

mod perf;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::running::DEFAULT_NAME;

pub use self::perf::{PerfArgs, PerfCommand};

/// Operate hosts of Baton, the hypervisor that can be replaced while guests run.
#[derive(Debug, Parser)]
#[command(name = "baton", version, arg_required_else_help = true)]
pub struct Cli {
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
        /// Where to write the bundle
        #[arg(short, long)]
        output: PathBuf,
        /// Sign it with the secret key in this file (`baton key new`): a running host with keys takes no other
        #[arg(long, value_name = "KEY")]
        sign: Option<PathBuf>,
    },
    /// Power off a running host
    Down {
        /// The host.
        #[command(flatten)]
        target: Target,
        /// Seconds until a host that does not power off is ended by force
        #[arg(long, default_value_t = 30)]
        timeout: u64,
    },
    /// Virtual machines of a running host
    Vm {
        /// The host.
        #[command(flatten)]
        target: Target,
        /// The command.
        #[command(subcommand)]
        command: VmCommand,
    },
    /// CPUs of a running host
    Cpu {
        /// The host.
        #[command(flatten)]
        target: Target,
        /// The command.
        #[command(subcommand)]
        command: CpuCommand,
    },
    /// PCI functions of a running host, and the cost of their discovery
    Pci {
        /// The host.
        #[command(flatten)]
        target: Target,
        /// The output's format.
        #[command(flatten)]
        format: Format,
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
        /// The host.
        #[command(flatten)]
        target: Target,
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
        /// The host.
        #[command(flatten)]
        target: Target,
        /// Only check and rehearse the update while guests run; replaces nothing.
        #[arg(long)]
        dry_run: bool,
        /// The output's format.
        #[command(flatten)]
        format: Format,
    },
    /// Describe, check and sign an image of Baton, and convert it for loaders
    Image {
        /// The command.
        #[command(subcommand)]
        command: ImageCommand,
    },
    /// Keys that images are signed with
    Key {
        /// The command.
        #[command(subcommand)]
        command: KeyCommand,
    },
    /// Draw where a running host spends its time: a flame graph of its CPUs, guests' and idle time included
    Perf(PerfArgs),
    /// Show how long each part of a running host's boot and restarts took, or of a Linux boot
    Timeline(TimelineArgs),
    /// Describe a running host
    Info {
        /// How it stands to speculation vulnerabilities instead, as Linux's /sys/devices/system/cpu/vulnerabilities has
        /// it
        #[arg(long)]
        vulnerabilities: bool,
        /// The host.
        #[command(flatten)]
        target: Target,
        /// The output's format.
        #[command(flatten)]
        format: Format,
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

/// A command for virtual machines.
#[derive(Debug, Subcommand)]
pub enum VmCommand {
    /// List them
    List(Format),
    /// Start a stopped one
    Start(VmOrder),
    /// Stop one at once, as if its power were cut
    Stop(VmOrder),
    /// Halt one where it is
    Pause(VmOrder),
    /// Let a paused one go on
    Resume(VmOrder),
    /// Start one again
    Reset(VmOrder),
    /// Write one's memory and registers to a core file for gdb and crash; one that runs is paused meanwhile
    Dump {
        /// The virtual machine
        vm: String,
        /// The core file [default: the machine's name and .core]
        #[arg(short, long)]
        output: Option<PathBuf>,
    },
    /// Show the exits and performance counters of one's vCPUs while it runs
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
    /// Connect to one's console (Ctrl-] leaves it)
    Console {
        /// The virtual machine
        vm: String,
        /// Once standard input has ended: seconds of silence after which to leave
        #[arg(long, default_value_t = 2.0)]
        linger: f64,
    },
}

/// A command for CPUs.
#[derive(Debug, Subcommand)]
pub enum CpuCommand {
    /// List them, with the vCPUs that run on them
    List(Format),
    /// Take one offline: its vCPUs move to others
    Offline(CpuOrder),
    /// Bring one online: vCPUs that belong there move back
    Online(CpuOrder),
}

/// A command for images.
#[derive(Debug, Subcommand)]
#[allow(missing_docs)]
pub enum ImageCommand {
    /// Show version, build, size, hand-over versions, SHA-256 and signature
    Info {
        /// The image's file
        image: PathBuf,
        #[command(flatten)]
        format: Format,
    },
    /// Check it against its seal and its signature
    Verify {
        /// The image's file
        image: PathBuf,
        /// A public key that is trusted (ed25519:…, or a file with it); several times for several
        #[arg(long)]
        key: Vec<String>,
    },
    /// Seal it with a signature; a seal that it has is replaced
    Sign {
        /// The image's file
        image: PathBuf,
        /// The file with the secret key (`baton key new`)
        #[arg(long)]
        key: PathBuf,
        /// Where to write it [default: the image's own file]
        #[arg(short, long)]
        output: Option<PathBuf>,
        /// Sign the image even if it is not what its seal states
        #[arg(long)]
        reseal: bool,
    },
    /// A file that loaders take for a Linux kernel, with the bundle as its initial RAM disk: for kexec, GRUB, iPXE
    Linux {
        /// Where to write it
        #[arg(short, long)]
        output: PathBuf,
        /// The hypervisor's image [default: $BATON_IMAGE, target/baton.elf]
        #[arg(long)]
        image: Option<PathBuf>,
    },
    /// A disc that boots by itself, on BIOS and UEFI
    Iso {
        /// The bundle, as `baton bundle` makes it
        bundle: PathBuf,
        /// Where to write it
        #[arg(short, long)]
        output: PathBuf,
        /// The hypervisor's image [default: $BATON_IMAGE, target/baton.elf]
        #[arg(long)]
        image: Option<PathBuf>,
        /// The host's command line
        #[arg(long, default_value = "")]
        cmdline: String,
    },
}

/// A command for keys.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Make one: the secret key in FILE, readable only by its owner, the public key in FILE.pub
    New {
        /// The file
        file: PathBuf,
    },
    /// Print the public key of a file with either
    Show {
        /// The file
        file: PathBuf,
    },
}

/// The runs to show, and the formats.
#[derive(Debug, Args)]
pub struct TimelineArgs {
    /// The host; asked unless files are named
    #[command(flatten)]
    pub target: Target,
    /// A Linux boot log (the output of dmesg; - is standard input); twice for two side by side
    #[arg(long, value_name = "FILE")]
    pub dmesg: Vec<PathBuf>,
    /// A picture that --json has printed, to show beside the others
    #[arg(long, value_name = "FILE")]
    pub beside: Vec<PathBuf>,
    /// Of a host's boot and its restarts, the last one only
    #[arg(long)]
    pub last: bool,
    /// Write a page for a browser: zoom, hover, the ten longest
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write a trace for Perfetto or chrome://tracing
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Print the picture as JSON
    #[arg(long)]
    pub json: bool,
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

/// An order for one virtual machine.
#[derive(Debug, Args)]
pub struct VmOrder {
    /// The virtual machine
    pub vm: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub format: Format,
}

/// The host.
#[derive(Clone, Debug, Args)]
pub struct Target {
    /// The host's name, as given to `baton up`
    #[arg(long, default_value = DEFAULT_NAME, global = true)]
    pub name: String,
}

/// The format: for people or for programs.
#[derive(Clone, Copy, Debug, Args)]
pub struct Format {
    /// Print JSON, one object per line
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `baton log`.
#[derive(Debug, Args)]
#[allow(missing_docs)]
pub struct LogArgs {
    #[command(flatten)]
    pub records: RecordArgs,
    /// The least severe level to show: error, warn, info, debug or trace
    #[arg(long, value_parser = level)]
    pub level: Option<wire::Level>,
    /// Show the remains of the host before this one: after a panic reason, registers, backtrace and end of its log;
    /// after a restart its log
    #[arg(long, conflicts_with = "follow")]
    pub previous: bool,
}

/// Arguments of commands that read records.
#[derive(Debug, Args)]
#[allow(missing_docs)]
pub struct RecordArgs {
    #[command(flatten)]
    pub target: Target,
    /// Follow new ones as they come
    #[arg(short, long)]
    pub follow: bool,
    #[command(flatten)]
    pub format: Format,
}

fn level(word: &str) -> Result<wire::Level, String> {
    use wire::Level::{Debug, Error, Info, Trace, Warn};
    let found = [Error, Warn, Info, Debug, Trace].into_iter().find(|level| level.to_string() == word);
    found.ok_or_else(|| "there are error, warn, info, debug and trace".to_owned())
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

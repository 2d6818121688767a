// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line of a checkout: the lab's and the benches' commands, and all of the operator's.

use std::path::PathBuf;

use baton::args::{Format, Target};
use baton::config::Iommu;
use baton::running::DEFAULT_NAME;
use baton::size::Size;
use clap::{Args, Parser, Subcommand};
use lab::{Accelerator, EmulatorKind};

/// Run and operate hosts of Baton, the hypervisor that can be replaced while guests run.
#[derive(Debug, Parser)]
#[command(name = "baton", bin_name = "baton", version, arg_required_else_help = true)]
pub struct Cli {
    /// The host of an operator's command.
    #[command(flatten)]
    pub target: Target,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start a host in an emulator and show its log and its guests' consoles
    Up(UpArgs),
    /// Boot the demo's guest and wait for its greeting and its power-off
    Demo {
        /// Another host.toml than guests/demo.toml
        config: Option<PathBuf>,
        /// The lab machine.
        #[command(flatten)]
        lab: LabArgs,
    },
    /// Measure, and compare the figures with their goals; without a name, list the benches
    Bench(BenchArgs),
    /// A command of the operator's tool.
    #[command(flatten)]
    Operator(baton::args::Command),
}

/// `baton up`.
#[derive(Debug, Args)]
#[allow(missing_docs)]
pub struct UpArgs {
    /// The host.toml
    pub config: PathBuf,
    /// Leave the host in the background once it answers
    #[arg(short, long)]
    pub detach: bool,
    /// Run as the background part of --detach
    #[arg(long, hide = true, conflicts_with = "detach")]
    pub background: bool,
    #[command(flatten)]
    pub lab: LabArgs,
}

/// The lab machine.
#[derive(Clone, Debug, Default, Args)]
pub struct LabArgs {
    /// The program that emulates the machine
    #[arg(long, value_enum, default_value_t)]
    pub emulator: EmulatorKind,
    /// The accelerator by which QEMU runs instructions
    #[arg(long, value_enum, default_value_t)]
    pub accel: Accelerator,
    /// QEMU [default: $BATON_QEMU, qemu-system-x86_64]
    #[arg(long)]
    pub qemu: Option<PathBuf>,
    /// Bochs [default: $BATON_BOCHS, bochs-bin]
    #[arg(long)]
    pub bochs: Option<PathBuf>,
    /// The model of Bochs's CPUs, as `bochs --help cpu` lists them
    #[arg(long, value_name = "MODEL", default_value = lab::bochs::DEFAULT_MODEL)]
    pub cpu: String,
    /// CPUs of the machine [default: host.toml's]
    #[arg(long)]
    pub cpus: Option<u32>,
    /// Memory of the machine [default: host.toml's]
    #[arg(long)]
    pub memory: Option<Size>,
    /// IOMMU of the machine [default: host.toml's]
    #[arg(long, value_enum)]
    pub iommu: Option<Iommu>,
    /// Seconds after which the tool ends a host that still runs
    #[arg(long)]
    pub timeout: Option<u64>,
    /// The hypervisor's image [default: $BATON_IMAGE, target/baton.elf]
    #[arg(long)]
    pub image: Option<PathBuf>,
    /// The host's name, for --name of other commands
    #[arg(long, default_value = DEFAULT_NAME)]
    pub name: String,
    /// Words to add to the host's command line, after host.toml's
    #[arg(long, default_value = "")]
    pub append: String,
}

/// `baton bench`.
#[derive(Debug, Args)]
#[allow(missing_docs)]
pub struct BenchArgs {
    /// Names of benches, or "all"; without any, list them
    pub benches: Vec<String>,
    #[command(flatten)]
    pub format: Format,
    /// Runs of each variant; figures are their medians
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub runs: u16,
    /// The emulator [default: $BATON_QEMU, the one that set-up fetched, qemu-system-x86_64]
    #[arg(long)]
    pub qemu: Option<PathBuf>,
    /// The hypervisor's image [default: $BATON_IMAGE, target/baton.elf]
    #[arg(long)]
    pub image: Option<PathBuf>,
    /// The time limit of one machine in seconds
    #[arg(long, default_value_t = 120)]
    pub timeout: u64,
    /// Minutes for which busy guests run under observation (guest-panic), or mutants are tried (structure)
    #[arg(long, default_value_t = 3)]
    pub minutes: u64,
    /// Run only the sizes (boot) or the policy (vpmu-precision) that goals need, or build nothing (structure)
    #[arg(long)]
    pub quick: bool,
    /// Make measurements that take tens of minutes, too: mutants (structure)
    #[arg(long)]
    pub all: bool,
    /// GiB of memory of the machines to boot, as 1,16 (boot)
    #[arg(long, value_name = "GIB", value_delimiter = ',')]
    pub memory: Vec<u64>,
    /// CPUs of the machines to boot, as 2,8 (boot)
    #[arg(long, value_name = "COUNT", value_delimiter = ',')]
    pub cpus: Vec<u32>,
    /// Exit with status 1 if a goal is missed
    #[arg(long)]
    pub check: bool,
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A lab machine in Bochs: an i440FX board that starts from a disc, with emulated time: a tick is an instruction.
//!
//! Bochs interprets one instruction after the other. It checks control blocks of nested guests, and reserved bits, more
//! strictly than QEMU does. It has no IOMMU, no MCFG and no PMU.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use baton::image::iso;

use super::rundir::{BOCHS_COMMANDS, BOCHS_CONFIGURATION, BOCHS_DISC};
use super::{Hardware, Machine, RunDir};

/// The program; Debian's `bochs` is a script around it.
pub const PROGRAM: &str = "bochs-bin";
/// The CPU model with SVM, nested paging, next RIPs and a pause filter.
pub const DEFAULT_MODEL: &str = "ryzen";
/// Firmware of Debian's packages bochsbios and vgabios.
const FIRMWARE: [&str; 2] = ["/usr/share/bochs/BIOS-bochs-latest", "/usr/share/bochs/VGABIOS-lgpl-latest"];
/// Instructions that Bochs counts as a second of the machine's.
const INSTRUCTIONS_PER_SECOND: u32 = 100_000_000;
/// A line of Bochs's log begins with the tick, of so many digits, and the first letter of its level.
const TICK_DIGITS: usize = 11;
/// The levels that report a fault: an error, and a panic.
const LEVELS: [char; 2] = ['e', 'p'];
/// How Bochs calls a power-off by the machine, which it takes for a panic of its own.
pub(super) const POWER_OFF: &str = "[ACPI  ] ACPI control: soft power off";
/// The text around its last message.
const FRAME: [&str; 2] = ["=====", "Bochs is exiting with the following message"];
/// Errors by Bochs's word that are none: exits and faults that guests cause, and registers that are probed.
const USUAL: [&str; 5] = [
    "SVM VMEXIT: ",
    "VMEXIT: EPT violation",
    "RDMSR: Unknown register",
    "WRMSR: Unknown register",
    "boundaryFetch #GP(0)",
];

/// Bochs with the model of its CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bochs {
    /// The emulator.
    pub program: PathBuf,
    /// A name that `bochs --help cpu` lists.
    pub model: String,
}

impl Default for Bochs {
    fn default() -> Self {
        Self::new(None, DEFAULT_MODEL)
    }
}

/// A machine that is ready to start: its command, and where its ports connect.
pub(super) struct Prepared {
    pub(super) command: Command,
    pub(super) log: TcpListener,
    pub(super) control: TcpListener,
}

impl Bochs {
    /// The program is `named`, else `BATON_BOCHS`, else the one on the path.
    pub fn new(named: Option<&Path>, model: &str) -> Self {
        let from_environment = || env::var_os("BATON_BOCHS").map(PathBuf::from);
        let program = named.map(Path::to_owned).or_else(from_environment).unwrap_or_else(|| PROGRAM.into());
        Self { program, model: model.to_owned() }
    }

    /// Writes the disc and the configuration of a machine to its folder.
    ///
    /// # Errors
    /// A machine that Bochs cannot emulate, firmware or programs that are missing, or a file that cannot be written.
    pub(super) fn prepare(&self, machine: &Machine, dir: &RunDir) -> Result<Prepared> {
        check(machine)?;
        let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no local port for Bochs can be opened");
        let (log, control) = (listen()?, listen()?);
        let ports = (log.local_addr()?.port(), control.local_addr()?.port());
        let file = |name| dir.path().join(name);
        let (disc, configuration, commands) = (file(BOCHS_DISC), file(BOCHS_CONFIGURATION), file(BOCHS_COMMANDS));
        let disc = match (&machine.disc, &machine.bundle) {
            (Some(disc), _) => disc.clone(),
            (None, Some(bundle)) => {
                iso::build(&machine.image, bundle, &machine.cmdline, &disc)?;
                disc
            }
            (None, None) => bail!("Bochs starts from a disc, which has a bundle; name one"),
        };
        let text = self.configuration(machine, &disc, ports)?;
        fs::write(&configuration, text).with_context(|| format!("{} cannot be written", configuration.display()))?;
        // Debian's Bochs has its debugger, which waits for this command: continue.
        fs::write(&commands, "c\n").with_context(|| format!("{} cannot be written", commands.display()))?;
        let mut command = Command::new(&self.program);
        command.process_group(0).args(["-q", "-f"]).arg(configuration).arg("-rc").arg(commands);
        Ok(Prepared { command, log, control })
    }

    /// Bochs's configuration; `ports` are those of COM1 and COM2.
    fn configuration(&self, machine: &Machine, disc: &Path, ports: (u16, u16)) -> Result<String> {
        let disc = disc.to_str().context("the path of the disc is not UTF-8")?;
        ensure!(!disc.contains('"'), "the path of the disc, {disc}, has a quote, which Bochs cannot be given");
        let (cpus, model, memory) = (machine.cpus, &self.model, machine.memory.bytes >> 20);
        let ([bios, vga_bios], ips) = (FIRMWARE, INSTRUCTIONS_PER_SECOND);
        let com =
            |number: u8, port: u16| format!("com{number}: enabled=1, mode=socket-client, dev=\"localhost:{port}\"\n");
        // Bochs reports faults on its standard error; a panic of its own ends it.
        Ok(format!(
            "config_interface: textconfig\n\
             display_library: rfb, options=\"timeout=0\"\n\
             romimage: file={bios}\n\
             vgaromimage: file={vga_bios}\n\
             memory: guest={memory}, host={memory}\n\
             cpu: model={model}, count={cpus}, ips={ips}, reset_on_triple_fault=0\n\
             clock: sync=none, time0=local\n\
             ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14\n\
             ata0-master: type=cdrom, path=\"{disc}\", status=inserted\n\
             boot: cdrom\n\
             {}{}\
             sound: driver=dummy\n\
             speaker: enabled=1, mode=none\n\
             log: -\n\
             panic: action=fatal\n\
             error: action=report\n\
             info: action=ignore\n\
             debug: action=ignore\n",
            com(1, ports.0),
            com(2, ports.1),
        ))
    }
}

/// Returns whether Debian's Bochs and its firmware are installed.
pub fn is_here() -> bool {
    let folders = env::var_os("PATH").unwrap_or_default();
    FIRMWARE.iter().all(|file| Path::new(file).exists())
        && env::split_paths(&folders).any(|folder| folder.join(PROGRAM).is_file())
}

/// Returns the error for a Bochs that cannot be started, with a hint.
pub(super) fn explain(program: &OsStr) -> String {
    let program = program.to_string_lossy();
    format!("the emulator {program:?} cannot be started; install bochs, or name it with --bochs or BATON_BOCHS")
}

/// Returns whether a line that Bochs has written reports a fault: in the control block of a guest, or with
/// Bochs itself.
pub(super) fn is_worth_keeping(line: &str) -> bool {
    let (tick, text) = line.split_at_checked(TICK_DIGITS).unwrap_or_default();
    let has_level = tick.chars().all(|digit| digit.is_ascii_digit()) && !tick.is_empty();
    if !has_level {
        return !FRAME.iter().any(|frame| line.starts_with(frame));
    }
    let is_usual = USUAL.iter().any(|usual| text.contains(usual)) || text.ends_with("soft power off");
    text.starts_with(LEVELS) && !is_usual
}

fn check(machine: &Machine) -> Result<()> {
    ensure!(
        machine.hardware == Hardware::default(),
        "Bochs's machine has no IOMMU and none of the lab's PCI devices; leave them out, or use --emulator qemu"
    );
    ensure!(machine.extra.is_empty(), "the arguments {:?} are QEMU's; use --emulator qemu", machine.extra);
    for file in FIRMWARE {
        ensure!(Path::new(file).exists(), "Bochs's firmware {file} is not here; install bochsbios and vgabios");
    }
    Ok(())
}

#[cfg(test)]
#[path = "bochs_tests.rs"]
mod tests;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The emulated machine.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};
use baton::size::Size;
use clap::ValueEnum;
use wire::exit_code::DEBUG_EXIT_PORT;

use super::Hardware;
use super::bochs::Bochs;

/// The emulator's way to run the machine's instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Accelerator {
    /// By translation: works everywhere, and emulates AMD SVM.
    #[default]
    Tcg,
    /// By translation in one thread, in which the CPUs take turns: free of the races between the threads of QEMU's
    /// emulation
    TcgSingle,
    /// By translation of one instruction at a time, in one thread: slow. With `-icount`, QEMU 10 counts all
    /// instructions of a block in which a CPU halts, so that only this shows how many were executed. QEMU 8.1 or newer
    TcgStepped,
    /// On the CPU: needs /dev/kvm with nested virtualization.
    Kvm,
}

/// A kind of emulator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum EmulatorKind {
    /// A q35 board, with IOMMUs and PCI devices
    #[default]
    Qemu,
    /// An i440FX board, with a stricter emulation; a tick of its time is an instruction
    Bochs,
}

/// The program that emulates a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Emulator {
    /// QEMU: a q35 board.
    Qemu {
        /// The program.
        program: PathBuf,
        /// Accelerator that runs instructions.
        accelerator: Accelerator,
    },
    /// Bochs: an i440FX board.
    Bochs(Bochs),
}

/// A lab machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The program that emulates it.
    pub emulator: Emulator,
    /// The number of its CPUs.
    pub cpus: u32,
    /// Its memory.
    pub memory: Size,
    /// The hypervisor's image.
    pub image: PathBuf,
    /// The bundle, if any.
    pub bundle: Option<PathBuf>,
    /// A disc that the firmware starts, instead of image, bundle and command line.
    pub disc: Option<PathBuf>,
    /// The hypervisor's command line.
    pub cmdline: String,
    /// Its IOMMU and PCI devices.
    pub hardware: Hardware,
    /// Further arguments for QEMU (`-icount shift=0`, …).
    pub extra: Vec<OsString>,
}

impl Machine {
    /// Returns the command that starts it: COM1 on standard output, COM2 connecting to `control`.
    ///
    /// # Errors
    /// Bochs emulates it, which is started with files ([`super::Lab::start`]).
    pub fn command(&self, control: &Path) -> Result<Command> {
        let Emulator::Qemu { program, accelerator } = &self.emulator else {
            bail!("only QEMU is started with a command alone; name it as the machine's emulator");
        };
        Ok(self.qemu_command(program, *accelerator, control))
    }

    fn qemu_command(&self, program: &Path, accelerator: Accelerator, control: &Path) -> Command {
        let mut command = Command::new(program);
        // Of its own group, so that Ctrl-C reaches us and not the emulator; its end would resemble a power-off.
        command.process_group(0);
        let (name, cpu) = match accelerator {
            Accelerator::Tcg => ("tcg", "max"),
            Accelerator::TcgSingle => ("tcg,thread=single", "max"),
            Accelerator::TcgStepped => ("tcg,thread=single,one-insn-per-tb=on", "max"),
            Accelerator::Kvm => ("kvm", "host"),
        };
        command
            .args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine"])
            .arg(self.board(accelerator));
        command.args(["-accel", name, "-cpu", cpu, "-smp", &self.cpus.to_string()]);
        command.args(["-m", &format!("{}M", self.memory.bytes >> 20)]);
        command.args(self.hardware.arguments());
        self.start_with(&mut command);
        command.args(["-chardev", "stdio,id=log,signal=off", "-serial", "chardev:log"]);
        command.arg("-chardev").arg(socket_option("control", control)).args(["-serial", "chardev:control"]);
        command.args(["-device", &format!("isa-debug-exit,iobase={DEBUG_EXIT_PORT:#x},iosize=4")]);
        command.args(&self.extra);
        command
    }

    /// Returns the chipset. KVM's own I/O APIC cannot remap interrupts.
    fn board(&self, accelerator: Accelerator) -> &'static str {
        match accelerator {
            Accelerator::Kvm if self.hardware.has_iommu() => "q35,kernel-irqchip=split",
            _ => "q35",
        }
    }

    /// Adds the arguments for what the firmware starts.
    fn start_with(&self, command: &mut Command) {
        if let Some(disc) = &self.disc {
            command.arg("-cdrom").arg(disc);
            return;
        }
        command.arg("-kernel").arg(&self.image).args(["-append", &self.cmdline]);
        if let Some(bundle) = &self.bundle {
            command.arg("-initrd").arg(bundle);
        }
    }
}

/// Returns the option for a character device that connects to a socket. QEMU's option parser wants commas doubled.
pub(super) fn socket_option(id: &str, path: &Path) -> OsString {
    OsString::from(format!("socket,id={id},path={}", path.to_string_lossy().replace(',', ",,")))
}

/// Returns the emulator: `named`, else `BATON_QEMU`, else the one on the path.
pub fn default_qemu(named: Option<&Path>) -> PathBuf {
    let from_environment = || env::var_os("BATON_QEMU").map(PathBuf::from);
    named.map(Path::to_owned).or_else(from_environment).unwrap_or_else(|| PathBuf::from("qemu-system-x86_64"))
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;

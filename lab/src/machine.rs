// SPDX-License-Identifier: MIT OR Apache-2.0
//! The emulated machine.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use baton::size::Size;
use clap::ValueEnum;
use wire::exit_code::DEBUG_EXIT_PORT;

use super::Hardware;

/// The emulator's way to run the machine's instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Accelerator {
    /// By translation: works everywhere, and emulates AMD SVM.
    #[default]
    Tcg,
    /// By translation in one thread, in which the CPUs take turns: free of the races between the threads of QEMU's
    /// emulation
    TcgSingle,
    /// On the CPU: needs /dev/kvm with nested virtualization.
    Kvm,
}

/// A lab machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The emulator.
    pub qemu: PathBuf,
    /// Accelerator that runs instructions.
    pub accelerator: Accelerator,
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
    /// Further arguments for the emulator (`-icount shift=0`, …).
    pub extra: Vec<OsString>,
}

impl Machine {
    /// Returns the command that starts it: COM1 on standard output, COM2 connecting to `control`.
    pub fn command(&self, control: &Path) -> Command {
        let mut command = Command::new(&self.qemu);
        // Of its own group, so that Ctrl-C reaches us and not the emulator, whose end would look like a power-off.
        command.process_group(0);
        let accelerator = match self.accelerator {
            Accelerator::Tcg => "tcg",
            Accelerator::TcgSingle => "tcg,thread=single",
            Accelerator::Kvm => "kvm",
        };
        let cpu = match self.accelerator {
            Accelerator::Tcg | Accelerator::TcgSingle => "max",
            Accelerator::Kvm => "host",
        };
        command
            .args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine"])
            .arg(self.board());
        command.args(["-accel", accelerator, "-cpu", cpu, "-smp", &self.cpus.to_string()]);
        command.args(["-m", &format!("{}M", self.memory.bytes >> 20)]);
        command.args(self.hardware.arguments());
        self.start_with(&mut command);
        command.args(["-chardev", "stdio,id=log,signal=off", "-serial", "chardev:log"]);
        command.arg("-chardev").arg(socket_option(control)).args(["-serial", "chardev:control"]);
        command.args(["-device", &format!("isa-debug-exit,iobase={DEBUG_EXIT_PORT:#x},iosize=4")]);
        command.args(&self.extra);
        command
    }

    /// Returns the chipset. KVM's own I/O APIC cannot remap interrupts.
    fn board(&self) -> &'static str {
        match self.accelerator {
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

/// Returns the option for the control channel's character device. QEMU's option parser wants commas doubled.
fn socket_option(path: &Path) -> OsString {
    OsString::from(format!("socket,id=control,path={}", path.to_string_lossy().replace(',', ",,")))
}

/// Returns the emulator: `named`, else `BATON_QEMU`, else the one on the path.
pub fn default_qemu(named: Option<&Path>) -> PathBuf {
    let from_environment = || env::var_os("BATON_QEMU").map(PathBuf::from);
    named.map(Path::to_owned).or_else(from_environment).unwrap_or_else(|| PathBuf::from("qemu-system-x86_64"))
}

#[cfg(test)]
mod tests {
    use baton::config::Iommu;

    use super::*;

    #[test]
    fn the_command_line_is_the_machines() {
        let machine = Machine {
            qemu: "qemu".into(),
            accelerator: Accelerator::Tcg,
            cpus: 2,
            memory: Size::mebibytes(2048),
            image: "baton.elf".into(),
            bundle: Some("a.cpio".into()),
            disc: None,
            cmdline: "log=debug smp=serial".into(),
            hardware: Hardware::default(),
            extra: vec!["-icount".into(), "shift=0".into()],
        };
        let command = machine.command(Path::new("/run/a,b.sock"));
        let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
        assert_eq!(
            arguments.join(" "),
            "-nodefaults -no-user-config -display none -no-reboot -machine q35 -accel tcg -cpu max -smp 2 \
             -m 2048M -kernel baton.elf -append log=debug smp=serial -initrd a.cpio -chardev \
             stdio,id=log,signal=off -serial chardev:log -chardev socket,id=control,path=/run/a,,b.sock -serial \
             chardev:control -device isa-debug-exit,iobase=0xf4,iosize=4 -icount shift=0"
        );
    }

    #[test]
    fn an_iommu_takes_the_io_apic_out_of_kvm() {
        let hardware = Hardware::place(Iommu::Amd, &[], Path::new("qemu"), Path::new("run")).expect("possible");
        let machine = |accelerator| Machine {
            qemu: "qemu".into(),
            accelerator,
            cpus: 1,
            memory: Size::mebibytes(512),
            image: "baton.elf".into(),
            bundle: None,
            disc: None,
            cmdline: String::new(),
            hardware: hardware.clone(),
            extra: Vec::new(),
        };
        let words = |accelerator| format!("{:?}", machine(accelerator).command(Path::new("a.sock")));
        assert!(words(Accelerator::Kvm).contains(r#""q35,kernel-irqchip=split""#), "{}", words(Accelerator::Kvm));
        assert!(words(Accelerator::Tcg).contains(r#""q35" "#), "{}", words(Accelerator::Tcg));
    }

    #[test]
    fn one_thread_may_run_all_cpus() {
        let machine = Machine {
            qemu: "qemu".into(),
            accelerator: Accelerator::TcgSingle,
            cpus: 4,
            memory: Size::mebibytes(512),
            image: "baton.elf".into(),
            bundle: None,
            disc: None,
            cmdline: String::new(),
            hardware: Hardware::default(),
            extra: Vec::new(),
        };
        let command = machine.command(Path::new("/run/a.sock"));
        let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
        assert!(arguments.join(" ").contains(" -accel tcg,thread=single -cpu max -smp 4 "), "{arguments:?}");
    }
}

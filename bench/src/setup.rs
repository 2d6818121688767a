// SPDX-License-Identifier: MIT OR Apache-2.0
//! Emulated machines that run Baton: the settings that benches share, and the wait for what they measure.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use baton::config::{Config, Control, Device, Guest, Host, Image, Iommu};
use baton::drivers::Drivers;
use baton::size::Size;
use bundle::{NetworkConfig, WhenDone};
use lab::bochs::Bochs;
use lab::{Accelerator, Emulator, Happening, Hardware, Lab, Machine, RunDir, What};
use tempfile::TempDir;

use super::Context;
use super::context::Build;

/// Arguments with which one instruction of the emulated machine takes one nanosecond. The second `-cpu` replaces the
/// lab's: QEMU 10's emulated x2APIC ends the emulator with "Bad icount read".
pub(super) const COUNT_INSTRUCTIONS: [&str; 4] = ["-icount", "shift=0,sleep=off", "-cpu", "max,-x2apic"];

/// The memory of a guest of stock Linux.
const LINUX_MEMORY: Size = Size::mebibytes(256);

/// A host to boot. A bench states the differences from [`HostSetup::new`].
#[derive(Clone, Debug)]
pub(super) struct HostSetup {
    pub cpus: u32,
    pub memory: Size,
    /// Without guests the machine has no bundle.
    pub guests: Vec<Guest>,
    /// The networks between guests.
    pub networks: Vec<NetworkConfig>,
    pub when_done: WhenDone,
    /// The image that the machine boots.
    pub build: Build,
    /// The image in the bundle, for restarts and updates.
    pub image: Image,
    /// The build that it is where it is the usual one.
    pub next_build: Build,
    /// The hypervisor's command line.
    pub options: String,
    /// The machine's IOMMU.
    pub iommu: Iommu,
    /// The machine's PCI devices.
    pub devices: Vec<Device>,
    /// Further arguments for the emulator.
    pub extra: Vec<OsString>,
    pub accelerator: Accelerator,
    /// Bochs's model of the CPUs, for a machine in Bochs. It has no devices, and takes no arguments.
    pub bochs: Option<&'static str>,
}

impl HostSetup {
    /// A host of one CPU and this much memory, without guests, options or an image for restarts.
    pub fn new(memory: Size) -> Self {
        Self {
            cpus: 1,
            memory,
            guests: Vec::new(),
            networks: Vec::new(),
            when_done: WhenDone::Stay,
            build: Build::Shipped,
            image: Image::None,
            next_build: Build::Shipped,
            options: String::new(),
            iommu: Iommu::None,
            devices: Vec::new(),
            extra: Vec::new(),
            accelerator: Accelerator::Tcg,
            bochs: None,
        }
    }

    /// Starts the machine.
    pub fn start(&self, context: &Context) -> Result<Started> {
        let folder = temporary_folder()?;
        Ok(Started { lab: self.start_in(context, folder.path())?, host_lines: Vec::new(), _folder: folder })
    }

    /// Starts the machine with its bundle and its sockets in `folder`.
    pub fn start_in(&self, context: &Context, folder: &Path) -> Result<Lab> {
        let bundle = folder.join("bundle.cpio");
        if !self.guests.is_empty() {
            fs::write(&bundle, self.bundle(context)?)?;
        }
        let machine = Machine {
            emulator: self.emulator(context),
            cpus: self.cpus,
            memory: self.memory,
            image: context.image_of(self.build)?,
            bundle: (!self.guests.is_empty()).then_some(bundle),
            disc: None,
            cmdline: self.options.clone(),
            hardware: Hardware::place(self.iommu, &self.devices, &context.qemu, folder)?,
            extra: self.extra.clone(),
        };
        Lab::start(&machine, RunDir::take_at(&folder.join("run"))?)
    }

    fn emulator(&self, context: &Context) -> Emulator {
        let qemu = || Emulator::Qemu { program: context.qemu.clone(), accelerator: self.accelerator };
        self.bochs.map_or_else(qemu, |model| Emulator::Bochs(Bochs::new(None, model)))
    }

    /// Returns the bundle: the guests and, where [`Self::image`] asks for one, the image.
    pub fn bundle(&self, context: &Context) -> Result<Vec<u8>> {
        let (cpus, memory, when_done) = (self.cpus, self.memory, self.when_done);
        let (iommu, devices) = (Iommu::None, Vec::new());
        let image = self.image.clone();
        let host = Host { cpus, memory, when_done, cmdline: String::new(), image, iommu, devices };
        let config = Config {
            path: PathBuf::from("bench"),
            host,
            trusted_keys: Vec::new(),
            allow_downgrade: None,
            control: Control::default(),
            networks: self.networks.clone(),
            guests: self.guests.clone(),
        };
        baton::bundle::build(&config, Some(&context.image_of(self.next_build)?))
    }
}

/// Makes a folder that is removed with the returned value.
pub(super) fn temporary_folder() -> Result<TempDir> {
    tempfile::tempdir().context("no temporary folder can be made")
}

/// A guest of one vCPU that starts with its host. A bench states the differences.
pub(super) fn guest(name: &str, kernel: PathBuf, memory: Size) -> Guest {
    Guest { hung_s: 0, ..Guest::new(name, kernel, memory) }
}

/// A guest of stock Linux, with the default kernel and these of its drivers, whose agent does `tasks`. The archive of
/// the drivers is put in `folder`.
pub(super) fn linux(context: &Context, folder: &Path, name: &str, drivers: &[&str], tasks: &str) -> Result<Guest> {
    let kernel = context.made("target/kernels/default/vmlinuz")?;
    let archive = folder.join(format!("{name}.cpio"));
    let content = Drivers::of(kernel.parent().unwrap_or(&kernel))?.archive(drivers)?;
    fs::write(&archive, content).context("the drivers cannot be written")?;
    Ok(Guest {
        initrd: Some(context.made("target/guests/initramfs.cpio")?),
        modules: vec![archive],
        cmdline: format!("console=ttyS0 loglevel=5 agent=drivers,{tasks}"),
        ..guest(name, kernel, LINUX_MEMORY)
    })
}

/// A guest `keeper` that does `tasks` and, where they end, reports it through the debug-exit port.
pub(super) fn keeper(context: &Context, tasks: &str, memory: Size) -> Result<Guest> {
    let kernel = context.made("target/guests/keeper.elf")?;
    Ok(Guest { cmdline: tasks.to_owned(), debug_exit: true, ..guest("keeper", kernel, memory) })
}

/// A machine that runs, with its log so far. Dropping it ends the emulator.
pub(super) struct Started {
    pub lab: Lab,
    host_lines: Vec<String>,
    /// The bundle and the sockets.
    _folder: TempDir,
}

impl Started {
    /// Waits until `find` returns something for a happening. Fails when the machine ends, or when it has run for
    /// `timeout`; `name` then states in the error what was missing.
    pub fn wait<T>(&mut self, timeout: Duration, name: &str, mut find: impl FnMut(&What) -> Option<T>) -> Result<T> {
        while let Some(left) = timeout.checked_sub(self.lab.elapsed()) {
            let Some(Happening { what, .. }) = self.lab.next(left) else { break };
            if let Some(found) = find(&what) {
                return Ok(found);
            }
            match what {
                What::HostLine(line) | What::EmulatorLine(line) => self.host_lines.push(line),
                What::Ended(ending) => bail!("{name}: none before the machine ended: {ending}{}", self.log()),
                _ => {}
            }
        }
        bail!("{name}: none within {timeout:?}; raise --timeout on a slow machine{}", self.log())
    }

    fn log(&self) -> String {
        format!("\nThe host's lines were\n{}", self.host_lines.join("\n"))
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host and its guests, in a few words.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use baton::config::{Config, Control, Device, Guest, Host as HostConfig, Image, Iommu};
use baton::size::Size;
use bundle::{NetworkConfig, WhenDone};
use lab::bochs::{Bochs, DEFAULT_MODEL};
use lab::{Accelerator, Hardware, Lab, Machine, RunDir};
use seal::PublicKey;
use tempfile::TempDir;

use crate::host::Host;
use crate::place::{Build, Emulator, Kernel};

mod guests;

pub use self::guests::{linux, program, tiny};

/// All that an emulator has, but for CMPXCHG16B: QEMU 7.2 damages the flags by it (reserved bits of EFLAGS are set
/// then, also with one thread for all CPUs), and Linux 6.12 crashes of that, with or without a hypervisor below.
const CPU: &str = "max,-cx16";

/// A host to start.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The emulator.
    pub emulator: Emulator,
    /// Its accelerator: one thread for all CPUs, unless [`Recipe::concurrent`].
    pub accelerator: Accelerator,
    /// Its CPU, for QEMU's `-cpu`, or the name of Bochs's model.
    pub cpu: &'static str,
    /// Number of CPUs.
    pub cpus: u32,
    /// Its memory.
    pub memory: Size,
    /// The host's command line; `panic=exit` is always there.
    pub options: String,
    /// The host's action when no guest is left running.
    pub when_done: WhenDone,
    /// The image that the machine boots.
    pub build: Build,
    /// The image for restarts and updates.
    pub image: Image,
    /// The build that it is where it is the usual one.
    pub next_build: Build,
    /// Keys; the host accepts images that they signed.
    pub trusted_keys: Vec<PublicKey>,
    /// True if the operator may go to images of a lower security version.
    pub allow_downgrade: Option<bool>,
    /// Keys that sign requests over the control channel.
    pub control: Control,
    /// Its guests.
    pub guests: Vec<Guest>,
    /// The machine's IOMMU.
    pub iommu: Iommu,
    /// The machine's PCI devices, each behind a root port of its own.
    pub pci_devices: Vec<Device>,
    /// The networks between guests.
    pub networks: Vec<NetworkConfig>,
    /// Further devices of the machine, as arguments for the emulator.
    pub devices: Vec<OsString>,
}

impl Recipe {
    /// A machine of two CPUs without guests; the host stays when they have ended.
    pub fn new() -> Self {
        Self {
            emulator: Emulator::System,
            accelerator: Accelerator::TcgSingle,
            cpu: CPU,
            cpus: 2,
            memory: Size::mebibytes(1024),
            options: String::new(),
            when_done: WhenDone::Stay,
            build: Build::Shipped,
            image: Image::Usual,
            next_build: Build::Shipped,
            trusted_keys: Vec::new(),
            allow_downgrade: None,
            control: Control::default(),
            guests: Vec::new(),
            iommu: Iommu::None,
            pci_devices: Vec::new(),
            networks: Vec::new(),
            devices: Vec::new(),
        }
    }

    /// An IOMMU, and PCI devices.
    pub fn with_devices(self, iommu: Iommu, pci_devices: impl Into<Vec<Device>>) -> Self {
        // The entries of an IOMMU's tables are changed by CMPXCHG16B.
        let cpu = if iommu == Iommu::None { self.cpu } else { "max" };
        Self { iommu, pci_devices: pci_devices.into(), cpu, ..self }
    }

    /// More of the machine, as arguments for the emulator.
    pub fn with(self, devices: impl Into<Vec<OsString>>) -> Self {
        Self { devices: devices.into(), ..self }
    }

    /// Another emulator.
    pub fn on(self, emulator: Emulator) -> Self {
        let cpu = if emulator == Emulator::Bochs { DEFAULT_MODEL } else { self.cpu };
        Self { emulator, cpu, ..self }
    }

    /// Bochs, with CPUs of this model, and the test image: it alone has Intel VMX.
    pub fn on_model(self, cpu: &'static str) -> Self {
        Self { emulator: Emulator::Bochs, cpu, ..self.with_fault_points() }
    }

    /// Gives each CPU a thread of its own, for tests of true concurrency. With guests these belong to the long suite.
    ///
    /// QEMU (TCG, 7.2 and 10) has a race between these threads. When any CPU loads x87 registers (FLDENV, FRSTOR,
    /// FXRSTOR, XRSTOR), QEMU clears a flag in a word of CPU 0 without a lock, and may undo the change of CPU 0 in
    /// that word in this instant: that a guest runs in nested paging, or that it was left. A guest's triple fault, a
    /// #GP or #PF of the host on CPU 0, or a machine that stands still may follow. Nothing that can be seen from
    /// outside proves it, so a failure counts as one; its message names this race.
    pub fn concurrent(self) -> Self {
        Self { accelerator: Accelerator::Tcg, ..self }
    }

    /// So many CPUs.
    pub fn cpus(self, cpus: u32) -> Self {
        Self { cpus, ..self }
    }

    /// So much memory, in MiB.
    pub fn memory_mib(self, mebibytes: u64) -> Self {
        Self { memory: Size::mebibytes(mebibytes), ..self }
    }

    /// Options for the host.
    pub fn options(self, options: &str) -> Self {
        Self { options: options.to_owned(), ..self }
    }

    /// Boots the test image, and restarts and updates to it: for hosts with `selftest=` in their options.
    pub fn with_fault_points(self) -> Self {
        Self { build: Build::WithFaultPoints, ..self.next_with_fault_points() }
    }

    /// Restarts and updates to the test image: the host that boots is the one that operators run.
    pub fn next_with_fault_points(self) -> Self {
        Self { next_build: Build::WithFaultPoints, ..self }
    }

    /// Makes the host power off when no guest is left running.
    pub fn powers_off(self) -> Self {
        Self { when_done: WhenDone::PowerOff, ..self }
    }

    /// One more guest.
    pub fn guest(mut self, guest: Guest) -> Self {
        self.guests.push(guest);
        self
    }

    /// One more guest: the release's own Linux with the agent, which does `tasks`.
    pub fn linux(self, name: &str, tasks: &str) -> Result<Self> {
        Ok(self.guest(linux(name, Kernel::Default, tasks)?))
    }

    /// One more guest: `keeper`, which greets and beats as the agent's `heartbeat` does. For tests that Linux is not
    /// the point of.
    pub fn beating(self, name: &str) -> Result<Self> {
        Ok(self.guest(tiny(name, "keeper", "do=beat")?))
    }

    /// One more guest: `keeper`, which greets, beats once and ends. For tests that Linux is not the point of.
    pub fn greeting(self, name: &str) -> Result<Self> {
        Ok(self.guest(tiny(name, "keeper", "do=beat beats=1")?))
    }

    /// One more guest: `hostile`, which misbehaves in these ways.
    pub fn hostile(self, name: &str, ways: &str) -> Result<Self> {
        Ok(self.guest(tiny(name, "hostile", &format!("do={ways}"))?))
    }

    /// The bundle for it.
    pub fn bundle(&self) -> Result<Vec<u8>> {
        let host = HostConfig {
            cpus: self.cpus,
            memory: self.memory,
            when_done: self.when_done,
            cmdline: String::new(),
            image: self.image.clone(),
            iommu: self.iommu,
            devices: self.pci_devices.clone(),
        };
        let config = Config {
            path: "host.toml".into(),
            host,
            trusted_keys: self.trusted_keys.clone(),
            allow_downgrade: self.allow_downgrade,
            control: self.control.clone(),
            networks: self.networks.clone(),
            guests: self.guests.clone(),
        };
        baton::bundle::build(&config, Some(&self.next_build.file()?))
    }

    /// Starts it.
    pub fn start(&self) -> Result<Host> {
        self.start_with(Some(&self.bundle()?))
    }

    /// Starts it with these bytes as its bundle, whatever they are.
    pub fn start_with(&self, bundle: Option<&[u8]>) -> Result<Host> {
        self.start_changed(bundle, |_, machine| Ok(machine))
    }

    /// Starts it on a machine that `change` makes another one; what that takes is written to the folder.
    pub fn start_changed(
        &self,
        bundle: Option<&[u8]>,
        change: impl FnOnce(&Path, Machine) -> Result<Machine>,
    ) -> Result<Host> {
        let folder = tempfile::tempdir()?;
        let machine = change(folder.path(), self.machine(folder.path(), bundle)?)?;
        let dir = RunDir::take_at(&folder.path().join("run"))?;
        Ok(Host::new(Lab::start(&machine, dir)?, folder))
    }

    /// The machine, its bundle written to `folder`.
    pub fn machine(&self, folder: &Path, bundle: Option<&[u8]>) -> Result<Machine> {
        let bundle_path = bundle.map(|_| folder.join("bundle"));
        if let (Some(path), Some(bytes)) = (&bundle_path, bundle) {
            fs::write(path, bytes).with_context(|| format!("{} cannot be written", path.display()))?;
        }
        let program = self.emulator.program()?;
        let hardware = Hardware::place(self.iommu, &self.pci_devices, &program, folder)?;
        let mut extra = self.devices.clone();
        let emulator = match self.emulator {
            Emulator::Bochs => lab::Emulator::Bochs(Bochs { program, model: self.cpu.into() }),
            Emulator::System | Emulator::Ten => {
                // The last -cpu counts.
                extra.splice(0..0, ["-cpu".into(), self.cpu.into()]);
                lab::Emulator::Qemu { program, accelerator: self.accelerator }
            }
        };
        Ok(Machine {
            emulator,
            cpus: self.cpus,
            memory: self.memory,
            image: self.build.file()?,
            bundle: bundle_path,
            disc: None,
            cmdline: format!("panic=exit {}", self.options),
            hardware,
            extra,
        })
    }
}

impl Default for Recipe {
    fn default() -> Self {
        Self::new()
    }
}

/// A folder for what a test writes itself.
pub fn folder() -> Result<TempDir> {
    Ok(tempfile::tempdir()?)
}

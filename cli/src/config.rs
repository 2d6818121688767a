// SPDX-License-Identifier: MIT OR Apache-2.0
//! `host.toml`: the operator's configuration of a host and its guests.
//!
//! `read` reads typed values and notes mistakes in them, `check` knows the keys and their possible values.
//! All mistakes are reported at once: file, line, column, item, reason, and a hint.

use std::fmt;
use std::path::{Path, PathBuf};

use bundle::{
    AssignedConfig, ControlKeyConfig, CpuModel, DiskConfig, Manifest, NetworkConfig, NicConfig, OnPanic, Pmu, PmuEvent,
    SmbiosConfig, VirtioDevices, VsockConfig, WhenDone,
};
use seal::PublicKey;

use crate::size::Size;

mod check;
mod check_boot;
mod check_devices;
mod check_disks;
mod check_functions;
mod check_networks;
mod check_smbios;
mod check_sockets;
mod check_trust;
mod devices;
mod names;
mod read;
pub mod show;
#[cfg(test)]
mod tests;

pub use devices::{Address, Backend, Device, Iommu, Model, Network, Nvme, Storage};
pub use switch::Mac;

/// A host and its guests; every path leads to a file that was there when the configuration was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The file it was read from.
    pub path: PathBuf,
    /// The machine the host runs on, and how the host behaves.
    pub host: Host,
    /// The keys that sign images that may replace the host's; without any, unsigned images are accepted.
    pub trusted_keys: Vec<PublicKey>,
    /// True if the operator may go to images of a lower security version; not stated: only where no key is trusted.
    pub allow_downgrade: Option<bool>,
    /// The keys that sign requests over the control channel.
    pub control: Control,
    /// The networks between guests: those of the host beside whose guests these are to run, then the file's.
    pub networks: Vec<NetworkConfig>,
    /// The guests, in the file's order.
    pub guests: Vec<Guest>,
}

/// The keys that sign requests over the control channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// The keys, in the file's order; without any, requests are not signed.
    pub keys: Vec<ControlKeyConfig>,
    /// True if requests over a serial line may be unsigned all the same.
    pub is_serial_open: bool,
}

/// The machine the host runs on, and how the host behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The number of CPUs of the lab machine.
    pub cpus: u32,
    /// Memory of the lab machine.
    pub memory: Size,
    /// The host's action when no guest is left running.
    pub when_done: WhenDone,
    /// The host's command line.
    pub cmdline: String,
    /// The image for restarts.
    pub image: Image,
    /// The IOMMU of the lab machine.
    pub iommu: Iommu,
    /// The PCI devices of the lab machine.
    pub devices: Vec<Device>,
}

/// The image by which a restart replaces the running one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Image {
    /// The image that the host is started with.
    #[default]
    Usual,
    /// Another.
    File(PathBuf),
    /// None: the host cannot be restarted warm.
    None,
}

/// The kernel that a guest starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Boot {
    /// Its kernel.
    #[default]
    Kernel,
    /// The kernel that is installed on a disk of its own. `kernel` is a Linux that searches for it.
    Disk {
        /// The folder with the drivers of that Linux.
        drivers: PathBuf,
        /// The disk's serial number; none: the first disk that has something to start.
        serial: Option<String>,
    },
}

/// One guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    /// Its name, unique.
    pub name: String,
    /// The file with its kernel.
    pub kernel: PathBuf,
    /// The file with its initial RAM disk.
    pub initrd: Option<PathBuf>,
    /// Files handed over as modules.
    pub modules: Vec<PathBuf>,
    /// The kernel that it starts.
    pub boot: Boot,
    /// Its kernel's command line.
    pub cmdline: String,
    /// The number of its vCPUs.
    pub vcpus: u32,
    /// Its memory; with `memory_max` the part that it has in any case.
    pub memory: Size,
    /// Its memory as it sees it, which it gets when it touches it (`memory_max`); `None`: all of it is there at once.
    pub memory_max: Option<Size>,
    /// True if it has the debug-exit port.
    pub debug_exit: bool,
    /// Its share where several vCPUs run on one CPU.
    pub weight: u32,
    /// The most of one CPU's time in percent that its vCPUs together get (`cap`); 0: as much as there is.
    pub cap_percent: u32,
    /// The action when its kernel has panicked or hangs.
    pub on_panic: OnPanic,
    /// Seconds with interrupts off after which it counts as hung; 0: never.
    pub hung_s: u32,
    /// Its performance counters.
    pub pmu: Pmu,
    /// The events that they may count; none named: all.
    pub pmu_events: Option<Vec<PmuEvent>>,
    /// True if it starts with the host.
    pub autostart: bool,
    /// The host's PCI functions that it gets (`devices`).
    pub functions: Vec<AssignedConfig>,
    /// Its virtio devices.
    pub virtio: VirtioDevices,
    /// Its network devices (`[[guest.nic]]`).
    pub nics: Vec<NicConfig>,
    /// Its sockets (`vsock`).
    pub vsock: Option<VsockConfig>,
    /// The CPU that it sees.
    pub cpu: CpuModel,
    /// The strings and the UUID of its SMBIOS tables (`uuid`, `serial`, `oem_strings`).
    pub smbios: SmbiosConfig,
    /// Its disks (`disk`).
    pub disks: Vec<DiskConfig>,
    /// True if it is shown KVM's features for vCPUs that share CPUs (`paravirtual`).
    pub is_paravirtual: bool,
}

impl Guest {
    /// Returns a guest of one vCPU, and all else by default.
    pub fn new(name: &str, kernel: PathBuf, memory: Size) -> Self {
        Self {
            name: name.to_owned(),
            kernel,
            initrd: None,
            modules: Vec::new(),
            boot: Boot::default(),
            cmdline: String::new(),
            vcpus: 1,
            memory,
            memory_max: None,
            debug_exit: false,
            weight: check::USUAL_WEIGHT,
            cap_percent: 0,
            on_panic: OnPanic::default(),
            hung_s: check::USUAL_HUNG_S,
            pmu: Pmu::Off,
            pmu_events: None,
            autostart: true,
            functions: Vec::new(),
            virtio: VirtioDevices::default(),
            nics: Vec::new(),
            vsock: None,
            cpu: CpuModel::Host,
            smbios: SmbiosConfig::default(),
            disks: Vec::new(),
            is_paravirtual: false,
        }
    }
}

/// The reason why a configuration cannot be used: every error in it, in the file's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The configuration file.
    pub path: PathBuf,
    /// The mistakes; at least one.
    pub mistakes: Vec<Mistake>,
}

/// Something that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mistake {
    /// Line and column in the file, counted from 1, where they are known.
    pub place: Option<(usize, usize)>,
    /// The item, the reason, and a hint.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Mistake { place, message }) in self.mistakes.iter().enumerate() {
            let line_end = if index == 0 { "" } else { "\n" };
            write!(f, "{line_end}{}", self.path.display())?;
            if let Some((line, column)) = place {
                write!(f, ":{line}:{column}")?;
            }
            write!(f, ": {message}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Reads and checks the file at `path`. Paths in it are relative to its folder.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Self::parse(path, &read_text(path)?)
    }

    /// Reads and checks the file at `path`, whose guests are to run beside those of a host with this configuration:
    /// they may name its networks and its guests.
    pub fn load_beside(path: &Path, host: &Manifest) -> Result<Self, ConfigError> {
        Self::parse_beside(path, &read_text(path)?, host)
    }

    /// Checks `text` as if it stood in the file at `path`.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        Self::parse_beside(path, text, &Manifest::default())
    }

    /// Checks `text` as if it stood in the file at `path`, beside the guests of a host.
    pub fn parse_beside(path: &Path, text: &str, host: &Manifest) -> Result<Self, ConfigError> {
        let mistakes = read::Mistakes::new(text);
        let config = read::root(text, &mistakes).and_then(|root| check::config(path, root, host));
        match (config, mistakes.into_inner()) {
            (Some(config), mistakes) if mistakes.is_empty() => Ok(config),
            (_, mistakes) => Err(ConfigError { path: path.to_owned(), mistakes }),
        }
    }
}

fn read_text(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).map_err(|error| {
        let message = format!("cannot be read ({error}); give the path of a host.toml");
        ConfigError { path: path.to_owned(), mistakes: vec![Mistake { place: None, message }] }
    })
}

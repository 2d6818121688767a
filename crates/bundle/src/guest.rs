// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manifest's entry for a guest.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::cpu::CpuModel;
use crate::disk::DiskConfig;
use crate::network::NicConfig;
use crate::smbios::SmbiosConfig;
use crate::vsock::{GuestControl, VsockConfig};

/// One guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestConfig {
    /// Its name towards the operator, unique in the bundle.
    pub name: String,
    /// The entry that holds its kernel.
    pub kernel: String,
    /// The entry that holds its initial RAM disk.
    pub initrd: Option<String>,
    /// Entries that are handed to a Multiboot or PVH kernel as modules, in this order.
    pub modules: Vec<String>,
    /// Its kernel's command line.
    pub cmdline: String,
    /// Its CPUs.
    pub vcpus: u32,
    /// Its memory.
    pub memory_bytes: u64,
    /// Its optional devices.
    pub devices: Devices,
    /// Its vCPUs' share where several have one CPU, from 1 to [`WEIGHT_MOST`](crate::limits::WEIGHT_MOST); 100 is
    /// usual.
    pub weight: u32,
    /// The host's action when its kernel has panicked or hangs.
    pub on_panic: OnPanic,
    /// Seconds with interrupts off after which a vCPU that spins counts as hung; 0: none does.
    pub hung_s: u32,
    /// Its performance counters.
    pub pmu: Pmu,
    /// The events that they may count; `None`: all.
    pub pmu_events: Option<Vec<PmuEvent>>,
    /// True if it starts with the host, without a `baton vm start`.
    pub autostart: bool,
    /// The host's PCI functions that it gets.
    pub functions: Vec<AssignedConfig>,
    /// The host's virtio devices that it gets.
    pub virtio: VirtioDevices,
    /// Its network devices.
    pub nics: Vec<NicConfig>,
    /// Its socket device.
    pub vsock: Option<VsockConfig>,
    /// The CPU that it sees.
    pub cpu: CpuModel,
    /// The content of its SMBIOS tables.
    pub smbios: SmbiosConfig,
    /// Its disks.
    pub disks: Vec<DiskConfig>,
    /// True if it is shown KVM's features for vCPUs that share CPUs.
    pub is_paravirtual: bool,
    /// Bytes of its memory that it has in any case, a multiple of 2 MiB; the rest it gets when it touches it, as long
    /// as the host has some, and all of it goes back when it is free. `None`: all of it is there from the start.
    #[serde(default)]
    pub assured_bytes: Option<u64>,
    /// Percent of one CPU's time that its vCPUs together get at most, up to
    /// [`CAP_MOST`](crate::limits::CAP_MOST); 0: as much as there is. An image that does not know it sets no limit.
    #[serde(default)]
    pub cap_percent: u32,
}

/// Virtio devices of a guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VirtioDevices {
    /// An entropy source.
    pub rng: bool,
    /// A console beside COM1.
    pub console: bool,
}

/// One of the host's PCI functions that a guest gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssignedConfig {
    /// The choice of the function: its address, or vendor and device (`pci::Selector`).
    pub selector: String,
    /// True if the guest gets it even where nothing can reset it.
    pub without_reset: bool,
    /// Number of its virtual functions (SR-IOV) that the guest may enable; at most
    /// [`VIRTUAL_FUNCTIONS`](crate::limits::VIRTUAL_FUNCTIONS).
    pub virtual_functions: u8,
    /// The global system interrupt of its INTx line, which the guest then has.
    pub gsi: Option<u32>,
}

impl GuestConfig {
    /// Returns how many virtual functions of a function the guest may enable: as many as it names the function with,
    /// however the function is assigned to it. `is_it` states whether a selector names the function.
    pub fn approved_virtual_functions(&self, is_it: impl Fn(&str) -> bool) -> u8 {
        let named = self.functions.iter().find(|function| is_it(&function.selector));
        named.map_or(0, |function| function.virtual_functions)
    }

    /// Returns what the guest may ask of the host over its sockets.
    pub fn control(&self) -> Option<GuestControl> {
        self.vsock.as_ref()?.control
    }
}

/// The host's action when a guest's kernel has panicked or hangs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnPanic {
    /// A spinning vCPU gets a small share of the CPU, so that the guest can still reboot itself, and its neighbours the
    /// rest.
    #[default]
    Throttle,
    /// It is stopped, as if its power were cut.
    Stop,
    /// It starts again.
    Reset,
    /// It is kept as it is until its memory has been fetched (`baton vm dump`) and the operator decides how it goes on.
    Dump,
    /// Nothing, and it is not watched: for kernels that wait in delay loops for long. A panic that it reports is
    /// reported.
    Ignore,
}

impl OnPanic {
    /// Each with its word in `host.toml`.
    pub const WORDS: [(Self, &'static str); 5] = [
        (Self::Throttle, "throttle"),
        (Self::Stop, "stop"),
        (Self::Reset, "reset"),
        (Self::Dump, "dump"),
        (Self::Ignore, "ignore"),
    ];

    /// Returns the action of this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.into_iter().find(|(_, its)| *its == word).map(|(action, _)| action)
    }

    /// Returns its word.
    pub fn word(self) -> &'static str {
        Self::WORDS.into_iter().find(|(action, _)| *action == self).map_or("", |(_, word)| word)
    }
}

/// A guest's performance counters. Their vendor is that of its CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pmu {
    /// None.
    #[default]
    Off,
    /// Intel's architectural ones, version 2.
    Intel,
    /// AMD's, version 2.
    Amd,
}

/// An event by its numbers in the vendor's manual.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PmuEvent {
    /// Event select, 12 bits.
    pub select: u16,
    /// Unit mask.
    pub unit: u8,
}

/// Optional devices of a guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Devices {
    /// A port that ends the guest with a code (as QEMU's isa-debug-exit): for test guests.
    pub debug_exit: bool,
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's manifest: host.toml in compiled form.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// The name of the first entry.
pub const MANIFEST_NAME: &str = "manifest";

/// The first bytes of a manifest.
pub const MANIFEST_MAGIC: [u8; 4] = *b"BtnM";

/// Newest version of the manifest's encoding that is written and read. Any change to it raises the version.
pub const MANIFEST_VERSION: u16 = 6;

/// The version before, which main had between release 0.1.0 and the next.
pub(crate) const VERSION_5: u16 = 5;

/// Oldest version that is written and read: that of release 0.1.0. A manifest that says nothing newer is written in
/// the oldest one that can, so that an update can lead to an image of that release and back.
pub const OLDEST_MANIFEST_VERSION: u16 = 4;

/// Limits on the content of a bundle.
pub mod limits {
    /// Guests.
    pub const GUESTS: usize = 64;
    /// Files.
    pub const FILES: usize = 1024;
    /// Bytes of an entry's name.
    pub const FILE_NAME_BYTES: usize = 255;
    /// Bytes of a guest's name: letters, digits, `-`, `_` and `.`.
    pub const GUEST_NAME_BYTES: usize = 32;
    /// Bytes of a guest's command line.
    pub const CMDLINE_BYTES: usize = 4095;
    /// Keys that a host trusts.
    pub const TRUSTED_KEYS: usize = 16;
    /// Modules of one guest.
    pub const MODULES: usize = 16;
    /// vCPUs of one guest.
    pub const VCPUS: u32 = 512;
    /// The largest weight of a guest; the least is 1.
    pub const WEIGHT_MOST: u32 = 1024;
    /// The longest that a vCPU may spin with interrupts off before the guest counts as hung, in seconds.
    pub const HUNG_MOST_S: u32 = 3600;
    /// PCI functions of the host that one guest gets.
    pub const FUNCTIONS: usize = 16;
    /// Bytes of the selector of such a function.
    pub const SELECTOR_BYTES: usize = 64;
    /// Events that a guest may count, where they are named.
    pub const PMU_EVENTS: usize = 16;
    /// Memory of a guest is a multiple of this many bytes.
    pub const MEMORY_GRANULE_BYTES: u64 = 1 << 20;
    /// The least memory of a guest in bytes.
    pub const MEMORY_LEAST_BYTES: u64 = 1 << 20;
    /// The most memory of a guest in bytes: what 48 bits address, halved for device holes.
    pub const MEMORY_MOST_BYTES: u64 = 1 << 47;
    /// Bytes of the manifest entry.
    pub const MANIFEST_BYTES: usize = 1 << 20;
}

/// The guests of a host, and the files that they start from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The host's own settings.
    pub host: HostConfig,
    /// The guests, in the order of their start.
    pub guests: Vec<GuestConfig>,
    /// Every other entry of the archive, in its order.
    pub files: Vec<FileRecord>,
}

/// The host's own settings. (What must be known before the bundle is read stands on the host's command line.)
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostConfig {
    /// The host's action when no guest is left running.
    pub when_done: WhenDone,
    /// The entry that holds Baton's own image, by which a restart replaces the running one. Without it none is
    /// possible.
    pub image: Option<String>,
    /// Ed25519 public keys. Where there are any, only images that one of them has signed replace the running one.
    pub trusted_keys: Vec<[u8; 32]>,
    /// True if the operator may go to images of a lower security version; `None`: only where there are no keys.
    #[serde(skip)]
    pub allow_downgrade: Option<bool>,
}

/// The fields that version 5 adds, behind the [`Manifest`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Added {
    /// [`HostConfig::allow_downgrade`].
    pub allow_downgrade: Option<bool>,
    /// [`GuestConfig::functions`] of each guest; no list where no guest has any.
    pub functions: Vec<Vec<AssignedConfig>>,
}

/// The fields that version 6 adds, behind those.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AddedLater {
    /// [`GuestConfig::virtio`] of each guest; no list where no guest has any.
    pub virtio: Vec<VirtioDevices>,
}

impl Manifest {
    pub(crate) fn added_later(&self) -> AddedLater {
        let has_virtio = self.guests.iter().any(|guest| guest.virtio != VirtioDevices::default());
        let guests = if has_virtio { &self.guests[..] } else { &[] };
        AddedLater { virtio: guests.iter().map(|guest| guest.virtio).collect() }
    }

    /// The manifest with these fields; `None` if they are of other guests.
    pub(crate) fn with_later(mut self, added: AddedLater) -> Option<Self> {
        if added.virtio.is_empty() {
            return Some(self);
        }
        let is_of_these = added.virtio.len() == self.guests.len();
        self.guests.iter_mut().zip(added.virtio).for_each(|(guest, virtio)| guest.virtio = virtio);
        is_of_these.then_some(self)
    }

    pub(crate) fn added(&self) -> Added {
        let has_functions = self.guests.iter().any(|guest| !guest.functions.is_empty());
        let guests = if has_functions { &self.guests[..] } else { &[] };
        let functions = guests.iter().map(|guest| guest.functions.clone()).collect();
        Added { allow_downgrade: self.host.allow_downgrade, functions }
    }

    /// The manifest with these fields; `None` if they are of other guests.
    pub(crate) fn with(mut self, added: Added) -> Option<Self> {
        self.host.allow_downgrade = added.allow_downgrade;
        if added.functions.is_empty() {
            return Some(self);
        }
        let is_of_these = added.functions.len() == self.guests.len();
        self.guests.iter_mut().zip(added.functions).for_each(|(guest, functions)| guest.functions = functions);
        is_of_these.then_some(self)
    }

    /// The oldest version that can express this manifest.
    pub(crate) fn version(&self) -> u16 {
        match () {
            () if self.added_later() != AddedLater::default() => MANIFEST_VERSION,
            () if self.added() != Added::default() => VERSION_5,
            () => OLDEST_MANIFEST_VERSION,
        }
    }
}

/// The host's action when no guest is left running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenDone {
    /// It waits for orders.
    #[default]
    Stay,
    /// It powers the machine off.
    #[serde(rename = "poweroff")]
    PowerOff,
    /// It leaves the emulator through QEMU's isa-debug-exit, telling whether every guest ended well.
    DebugExit,
}

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
    /// Its vCPUs' share where several have one CPU, from 1 to [`limits::WEIGHT_MOST`]; 100 is usual.
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
    #[serde(skip)]
    pub functions: Vec<AssignedConfig>,
    /// The host's virtio devices that it gets.
    #[serde(skip)]
    pub virtio: VirtioDevices,
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssignedConfig {
    /// The choice of the function: its address, or vendor and device (`pci::Selector`).
    pub selector: String,
    /// True if the guest gets it even where nothing can reset it.
    pub without_reset: bool,
}

impl GuestConfig {
    /// A number that differs where what the bundle states of a guest differs: FNV-1a over its encoding. 0 if it cannot
    /// be encoded. Without functions and virtio devices it is the number that release 0.1.0 computes.
    pub fn digest(&self) -> u64 {
        const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x100_0000_01b3;
        let mut bytes = postcard::to_allocvec(self).unwrap_or_default();
        if !self.functions.is_empty() {
            bytes.extend(postcard::to_allocvec(&self.functions).unwrap_or_default());
        }
        if self.virtio != VirtioDevices::default() {
            bytes.extend(b"virtio");
            bytes.extend(postcard::to_allocvec(&self.virtio).unwrap_or_default());
        }
        let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
        if bytes.is_empty() { 0 } else { bytes.iter().fold(OFFSET, fold) }
    }
}

/// The host's action on a guest whose kernel has panicked or hangs.
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
    /// It is kept where it is until its memory has been fetched (`baton vm dump`) and the operator says how it goes
    /// on.
    Dump,
    /// Nothing, and it is not watched: for kernels that wait in delay loops for long. A panic that it reports is
    /// reported.
    Ignore,
}

/// A guest's performance counters: the vendor whose they are is the one that its CPU shows.
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

/// One entry of the archive besides the manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Its name in the archive.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// CRC-32 (ISO HDLC) of its bytes.
    pub crc32: u32,
}

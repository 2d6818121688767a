// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's manifest: host.toml in compiled form.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::control::{ControlFields, ControlKeyConfig};
use crate::disk::DiskConfig;
pub use crate::file_record::FileRecord;
use crate::guest::{AssignedConfig, GuestConfig, VirtioDevices};
use crate::network::{NetworkConfig, NicConfig};
use crate::vsock::VsockConfig;

/// The name of the first entry.
pub const MANIFEST_NAME: &str = "manifest";

/// The first bytes of a manifest.
pub const MANIFEST_MAGIC: [u8; 4] = *b"BtnM";

/// Newest version of the manifest's encoding that is written and read. Any change to it raises the version.
pub const MANIFEST_VERSION: u16 = 14;

/// The versions before, between release 0.1.0 and the next.
pub(crate) const VERSION_5: u16 = 5;
pub(crate) const VERSION_6: u16 = 6;
pub(crate) const VERSION_7: u16 = 7;
pub(crate) const VERSION_8: u16 = 8;
pub(crate) const VERSION_9: u16 = 9;
pub(crate) const VERSION_10: u16 = 10;
pub(crate) const VERSION_11: u16 = 11;
pub(crate) const VERSION_12: u16 = 12;
pub(crate) const VERSION_13: u16 = 13;

/// Oldest version that is written and read: that of release 0.1.0. A manifest with no newer entry is written in
/// the oldest one that can, so that an update can lead to an image of that release and back.
pub const OLDEST_MANIFEST_VERSION: u16 = 4;

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
    /// The networks between guests.
    #[serde(skip)]
    pub networks: Vec<NetworkConfig>,
    /// The keys that sign requests over the control channel; where there are any, other requests are refused.
    #[serde(skip)]
    pub control_keys: Vec<ControlKeyConfig>,
    /// True if requests over a serial line may be unsigned all the same.
    #[serde(skip)]
    pub is_serial_open: bool,
}

impl HostConfig {
    /// The settings of a host without a bundle.
    pub const EMPTY: Self = Self {
        when_done: WhenDone::Stay,
        image: None,
        trusted_keys: Vec::new(),
        allow_downgrade: None,
        networks: Vec::new(),
        control_keys: Vec::new(),
        is_serial_open: false,
    };
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

/// The fields that version 7 adds, behind those.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Networks {
    /// [`HostConfig::networks`].
    pub networks: Vec<NetworkConfig>,
    /// [`GuestConfig::nics`] of each guest.
    pub nics: Vec<Vec<NicConfig>>,
}

/// The fields that version 8 adds, behind those.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sockets {
    /// [`GuestConfig::vsock`] of each guest: its identifier and those of its peers; nothing without the device.
    pub vsock: Vec<Vec<u32>>,
}

impl Manifest {
    pub(crate) fn sockets(&self) -> Sockets {
        Sockets { vsock: self.guests.iter().map(|guest| VsockConfig::list(guest.vsock.as_ref())).collect() }
    }

    /// Returns the manifest with these socket devices; `None` if they are of other guests.
    pub(crate) fn with_sockets(mut self, sockets: Sockets) -> Option<Self> {
        let is_of_these = sockets.vsock.len() == self.guests.len();
        self.guests.iter_mut().zip(sockets.vsock).for_each(|(guest, list)| guest.vsock = VsockConfig::of_list(list));
        is_of_these.then_some(self)
    }
}

/// The fields that version 9 adds, behind those.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lines {
    /// [`AssignedConfig::gsi`] of each function of each guest.
    pub gsis: Vec<Vec<Option<u32>>>,
}

impl Manifest {
    pub(crate) fn lines(&self) -> Lines {
        let of = |guest: &GuestConfig| guest.functions.iter().map(|function| function.gsi).collect();
        Lines { gsis: self.guests.iter().map(of).collect() }
    }

    /// Returns the manifest with these lines; `None` if they are of other guests, or of other functions.
    pub(crate) fn with_lines(mut self, lines: Lines) -> Option<Self> {
        let is_of_these = |(guest, gsis): (&GuestConfig, &Vec<_>)| guest.functions.len() == gsis.len();
        if self.guests.len() != lines.gsis.len() || !self.guests.iter().zip(&lines.gsis).all(is_of_these) {
            return None;
        }
        let functions = self.guests.iter_mut().flat_map(|guest| &mut guest.functions);
        functions.zip(lines.gsis.into_iter().flatten()).for_each(|(function, gsi)| function.gsi = gsi);
        Some(self)
    }
}

/// The fields that version 10 adds, behind those.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VirtualFunctions {
    /// [`AssignedConfig::virtual_functions`] of each function of each guest.
    pub numbers: Vec<Vec<u8>>,
}

/// The fields that version 11 adds, behind those.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Disks {
    /// [`GuestConfig::disks`] of each guest.
    pub disks: Vec<Vec<DiskConfig>>,
}

impl Manifest {
    pub(crate) fn virtual_functions(&self) -> VirtualFunctions {
        let of = |guest: &GuestConfig| guest.functions.iter().map(|function| function.virtual_functions).collect();
        VirtualFunctions { numbers: self.guests.iter().map(of).collect() }
    }

    /// Returns the manifest with these virtual functions; `None` if they are of other functions.
    pub(crate) fn with_virtual_functions(mut self, added: &VirtualFunctions) -> Option<Self> {
        if added.numbers.len() != self.guests.len() {
            return None;
        }
        for (guest, numbers) in self.guests.iter_mut().zip(&added.numbers) {
            if guest.functions.len() != numbers.len() {
                return None;
            }
            guest.functions.iter_mut().zip(numbers).for_each(|(function, number)| function.virtual_functions = *number);
        }
        Some(self)
    }

    pub(crate) fn disks(&self) -> Disks {
        Disks { disks: self.guests.iter().map(|guest| guest.disks.clone()).collect() }
    }

    /// Returns the manifest with these disks; `None` if they are of other guests.
    pub(crate) fn with_disks(mut self, added: Disks) -> Option<Self> {
        let is_of_these = added.disks.len() == self.guests.len();
        self.guests.iter_mut().zip(added.disks).for_each(|(guest, disks)| guest.disks = disks);
        is_of_these.then_some(self)
    }

    pub(crate) fn networks(&self) -> Networks {
        let nics = self.guests.iter().map(|guest| guest.nics.clone()).collect();
        Networks { networks: self.host.networks.clone(), nics }
    }

    /// Returns the manifest with these networks; `None` if they are of other guests.
    pub(crate) fn with_networks(mut self, networks: Networks) -> Option<Self> {
        self.host.networks = networks.networks;
        let is_of_these = networks.nics.len() == self.guests.len();
        self.guests.iter_mut().zip(networks.nics).for_each(|(guest, nics)| guest.nics = nics);
        is_of_these.then_some(self)
    }

    pub(crate) fn added_later(&self) -> AddedLater {
        let has_virtio = self.guests.iter().any(|guest| guest.virtio != VirtioDevices::default());
        let guests = if has_virtio { &self.guests[..] } else { &[] };
        AddedLater { virtio: guests.iter().map(|guest| guest.virtio).collect() }
    }

    /// Returns the manifest with these fields; `None` if they are of other guests.
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

    /// Returns the manifest with these fields; `None` if they are of other guests.
    pub(crate) fn with(mut self, added: Added) -> Option<Self> {
        self.host.allow_downgrade = added.allow_downgrade;
        if added.functions.is_empty() {
            return Some(self);
        }
        let is_of_these = added.functions.len() == self.guests.len();
        self.guests.iter_mut().zip(added.functions).for_each(|(guest, functions)| guest.functions = functions);
        is_of_these.then_some(self)
    }

    /// Returns the oldest version that can express this manifest.
    pub(crate) fn version(&self) -> u16 {
        let has_nics = self.guests.iter().any(|guest| !guest.nics.is_empty());
        let mut functions = self.guests.iter().flat_map(|guest| &guest.functions);
        let has_line = functions.clone().any(|function| function.gsi.is_some());
        match () {
            () if self.has_guest_controls() => MANIFEST_VERSION,
            () if self.control_fields() != ControlFields::default() => VERSION_13,
            () if self.guests.iter().any(GuestConfig::has_disk_limits) => VERSION_12,
            () if self.guests.iter().any(|guest| guest.has_tables() || !guest.disks.is_empty()) => VERSION_11,
            () if functions.any(|function| function.virtual_functions > 0) => VERSION_10,
            () if has_line => VERSION_9,
            () if self.guests.iter().any(|guest| guest.vsock.is_some()) => VERSION_8,
            () if has_nics => VERSION_7,
            () if self.added_later() != AddedLater::default() => VERSION_6,
            () if self.added() != Added::default() => VERSION_5,
            () => OLDEST_MANIFEST_VERSION,
        }
    }
}

impl HostConfig {
    /// Returns whether requests over a serial line have to be signed.
    pub fn demands_sessions(&self) -> bool {
        !self.control_keys.is_empty() && !self.is_serial_open
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
    /// It leaves the emulator through QEMU's isa-debug-exit, with a value that states whether every guest ended well.
    DebugExit,
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Version 4 of the manifest, that of release 0.1.0: the entries that it has, in postcard's encoding.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::cpu::CpuModel;
use crate::file_record::FileRecord;
use crate::guest::{Devices, GuestConfig, OnPanic, Pmu, PmuEvent, VirtioDevices};
use crate::manifest::{HostConfig, Manifest, WhenDone};
use crate::smbios::SmbiosConfig;

/// [`Manifest`].
#[derive(Serialize, Deserialize)]
pub(crate) struct OldManifest {
    host: OldHost,
    guests: Vec<OldGuest>,
    files: Vec<FileRecord>,
}

/// [`HostConfig`].
#[derive(Serialize, Deserialize)]
struct OldHost {
    when_done: WhenDone,
    image: Option<String>,
    trusted_keys: Vec<[u8; 32]>,
}

/// [`GuestConfig`].
#[derive(Serialize, Deserialize)]
pub(crate) struct OldGuest {
    name: String,
    kernel: String,
    initrd: Option<String>,
    modules: Vec<String>,
    cmdline: String,
    vcpus: u32,
    memory_bytes: u64,
    devices: Devices,
    weight: u32,
    on_panic: OnPanic,
    hung_s: u32,
    pmu: Pmu,
    pmu_events: Option<Vec<PmuEvent>>,
    autostart: bool,
}

impl OldManifest {
    /// Returns the manifest in this version; `None` if it has newer entries.
    pub fn of(manifest: &Manifest) -> Option<Self> {
        let is_all = Manifest::from(Self::lossy(manifest)) == *manifest;
        is_all.then(|| Self::lossy(manifest))
    }

    fn lossy(manifest: &Manifest) -> Self {
        let HostConfig { when_done, image, trusted_keys, .. } = manifest.host.clone();
        Self {
            host: OldHost { when_done, image, trusted_keys },
            guests: manifest.guests.iter().map(OldGuest::lossy).collect(),
            files: manifest.files.clone(),
        }
    }
}

impl From<OldManifest> for Manifest {
    fn from(old: OldManifest) -> Self {
        let OldHost { when_done, image, trusted_keys } = old.host;
        Self {
            host: HostConfig { when_done, image, trusted_keys, ..HostConfig::EMPTY },
            guests: old.guests.into_iter().map(GuestConfig::from).collect(),
            files: old.files,
        }
    }
}

impl OldGuest {
    /// Returns the guest in this version, without newer entries.
    pub fn lossy(guest: &GuestConfig) -> Self {
        let guest = guest.clone();
        Self {
            name: guest.name,
            kernel: guest.kernel,
            initrd: guest.initrd,
            modules: guest.modules,
            cmdline: guest.cmdline,
            vcpus: guest.vcpus,
            memory_bytes: guest.memory_bytes,
            devices: guest.devices,
            weight: guest.weight,
            on_panic: guest.on_panic,
            hung_s: guest.hung_s,
            pmu: guest.pmu,
            pmu_events: guest.pmu_events,
            autostart: guest.autostart,
        }
    }
}

impl From<OldGuest> for GuestConfig {
    fn from(old: OldGuest) -> Self {
        Self {
            name: old.name,
            kernel: old.kernel,
            initrd: old.initrd,
            modules: old.modules,
            cmdline: old.cmdline,
            vcpus: old.vcpus,
            memory_bytes: old.memory_bytes,
            devices: old.devices,
            weight: old.weight,
            on_panic: old.on_panic,
            hung_s: old.hung_s,
            pmu: old.pmu,
            pmu_events: old.pmu_events,
            autostart: old.autostart,
            functions: Vec::new(),
            virtio: VirtioDevices::default(),
            nics: Vec::new(),
            vsock: None,
            cpu: CpuModel::Host,
            smbios: SmbiosConfig::default(),
            disks: Vec::new(),
            is_paravirtual: false,
            assured_bytes: None,
            cap_percent: 0,
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The IOMMU and the PCI devices of a lab machine, as arguments for the emulator.
//!
//! Each device is behind a PCI Express root port of its own, so that it is an isolation group of its own: device N of
//! `host.toml` is function 0 of the bus behind port `00:(1+N).0`. With AMD's IOMMU it is `00:(1+N).0` itself: QEMU asks
//! for a function's bus number while it builds the machine, when firmware has given none, and checks transfers of all
//! functions behind ports as those of functions of bus 0 (hw/i386/amd_iommu.c, `amdvi_host_dma_iommu`, 7.2 and 10.0).

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use baton::config::{Address, Backend, Device, Iommu, Model, Network, Nvme, Storage};

use super::rundir::DISK_PREFIX;

mod version;

pub use version::version_of;

/// The slot of the first bus before that of the first device or its port. QEMU itself takes slot 1 for AMD's IOMMU.
const SLOT_BEFORE_PORTS: usize = 1;
/// Queues that one of the emulator's NVMe controllers shares out to its virtual functions: a pair is for Admin, another
/// for I/O.
const QUEUES_PER_VIRTUAL_FUNCTION: u32 = 2;
/// I/O queue pairs of an NVMe controller that no virtual function has.
const PRIVATE_QUEUES: u32 = 8;

/// A machine's IOMMU and PCI devices; their files exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hardware {
    iommu: Iommu,
    passes_interrupts: bool,
    devices: Vec<OsString>,
}

impl Hardware {
    /// Makes the files of temporary disks in `folder`, for a machine that `qemu` emulates.
    ///
    /// # Errors
    /// A device that this emulator does not have, a file that cannot be made.
    pub fn place(iommu: Iommu, devices: &[Device], qemu: &Path, folder: &Path) -> Result<Self> {
        version::check(devices, qemu)?;
        let mut arguments = Vec::new();
        for (index, device) in devices.iter().enumerate() {
            let number = index + 1;
            if iommu != Iommu::Amd {
                arguments.extend(port(number));
            }
            let place = place(iommu, number);
            arguments.extend(match device {
                Device::Nvme(nvme) => disk((number, &place), nvme, &content(number, nvme, folder)?),
                Device::Network(network) => card((number, &place), network),
                Device::Edu => ["-device".into(), format!("edu,{place},dma_mask={:#x}", u64::MAX).into()].into(),
            });
        }
        Ok(Self { iommu, passes_interrupts: false, devices: arguments })
    }

    /// The same with an IOMMU that translates transfers, but lets every interrupt through.
    pub fn without_remapping(self) -> Self {
        Self { passes_interrupts: true, ..self }
    }

    /// Returns whether the machine has an IOMMU.
    pub fn has_iommu(&self) -> bool {
        self.iommu != Iommu::None
    }

    /// Returns the emulator's arguments. The IOMMU comes first: QEMU gives devices that exist before it addresses that
    /// are not translated. `pt=off`: with `on`, the default, QEMU 10's AMD-Vi translates no transfer at all, whatever
    /// its tables hold (hw/i386/amd_iommu.c, `amdvi_host_dma_iommu`).
    pub fn arguments(&self) -> Vec<OsString> {
        let remaps = if self.passes_interrupts { "off" } else { "on" };
        let iommu = match self.iommu {
            Iommu::None => None,
            Iommu::Amd => Some(format!("amd-iommu,intremap={remaps},pt=off")),
            Iommu::Intel => Some(format!("intel-iommu,intremap={remaps},aw-bits=48")),
        };
        let iommu = iommu.into_iter().flat_map(|iommu| ["-device".into(), iommu.into()]);
        iommu.chain(self.devices.iter().cloned()).collect()
    }
}

/// The bus of a device, and its slot there if it has a choice.
fn place(iommu: Iommu, number: usize) -> String {
    match iommu {
        Iommu::Amd => format!("bus=pcie.0,addr={:#x}", SLOT_BEFORE_PORTS + number),
        Iommu::Intel | Iommu::None => format!("bus=port{number}"),
    }
}

/// The root port of a device.
fn port(number: usize) -> [OsString; 2] {
    let slot = SLOT_BEFORE_PORTS + number;
    let port = format!("pcie-root-port,id=port{number},bus=pcie.0,addr={slot:#x},chassis={number},slot={number}");
    ["-device".into(), port.into()]
}

/// Returns the file with a disk's content.
fn content(number: usize, nvme: &Nvme, folder: &Path) -> Result<PathBuf> {
    let size = match &nvme.storage {
        Storage::File(path) => return Ok(path.clone()),
        Storage::Temporary(size) => *size,
    };
    let path = folder.join(format!("{DISK_PREFIX}{number}.img"));
    let made = File::create(&path).and_then(|file| file.set_len(size.bytes));
    made.with_context(|| {
        format!("[[host.device]] {number}: the temporary disk {} ({size}) cannot be made", path.display())
    })?;
    Ok(path)
}

/// A disk. Its namespace is shared by all functions of its subsystem.
fn disk((number, place): (usize, &str), nvme: &Nvme, content: &Path) -> Vec<OsString> {
    let file = escaped(content);
    let node = format!("node-name=disk{number},driver=raw,file.driver=file,file.filename={file}");
    let mut controller = format!("nvme,id=nvme{number},{place},serial={}", nvme.serial);
    controller += &format!(",subsys=subsystem{number}");
    if nvme.virtual_functions > 0 {
        controller += &sriov(nvme.virtual_functions);
    }
    let subsystem = format!("nvme-subsys,id=subsystem{number},nqn={}", nvme.serial);
    let namespace = format!("nvme-ns,bus=nvme{number},drive=disk{number}");
    let devices = [subsystem, controller, namespace];
    let blocks = [OsString::from("-blockdev"), node.into()];
    blocks.into_iter().chain(devices.into_iter().flat_map(|device| ["-device".into(), device.into()])).collect()
}

/// The queue pairs and interrupts that virtual functions can be given.
fn sriov(functions: u32) -> String {
    let shared = functions * QUEUES_PER_VIRTUAL_FUNCTION;
    let (pairs, interrupts) = (PRIVATE_QUEUES + shared, 1 + PRIVATE_QUEUES + functions);
    format!(
        ",sriov_max_vfs={functions},sriov_vq_flexible={shared},sriov_vi_flexible={functions},max_ioqpairs={pairs},\
         msix_qsize={interrupts}"
    )
}

/// A network card, without the ROM that firmware would start from the network.
fn card((number, place): (usize, &str), network: &Network) -> Vec<OsString> {
    let model = match network.model {
        Model::E1000e => "e1000e",
        Model::Igb => "igb",
        Model::VirtioNet => "virtio-net-pci,disable-legacy=on,iommu_platform=on",
    };
    let mut card = format!("{model},netdev=net{number},{place},romfile=");
    if let Some(mac) = network.mac {
        card += &format!(",mac={mac}");
    }
    let netdev = netdev(number, &network.backend);
    ["-netdev".into(), netdev.into(), "-device".into(), card.into()].into()
}

fn netdev(number: usize, backend: &Backend) -> String {
    match backend {
        Backend::User { forward } => {
            let rules: String = forward.iter().map(|rule| format!(",hostfwd={rule}")).collect();
            format!("user,id=net{number}{rules}")
        }
        Backend::Listen(at) => format!("stream,id=net{number},server=on{}", socket("addr", at)),
        Backend::Connect(at) => format!("stream,id=net{number},server=off{}", socket("addr", at)),
        Backend::Datagrams { local, remote } => {
            format!("dgram,id=net{number}{}{}", socket("local", local), socket("remote", remote))
        }
        Backend::Tap(interface) => format!("tap,id=net{number},ifname={interface},script=no,downscript=no"),
    }
}

/// The address of a socket, as the option `name`.
fn socket(name: &str, address: &Address) -> String {
    match address {
        Address::Inet(host, port) => {
            format!(",{name}.type=inet,{name}.host={},{name}.port={port}", host.replace(',', ",,"))
        }
        Address::Unix(path) => format!(",{name}.type=unix,{name}.path={}", escaped(path)),
    }
}

/// QEMU's option parser wants commas doubled.
fn escaped(path: &Path) -> String {
    path.to_string_lossy().replace(',', ",,")
}

#[cfg(test)]
mod tests;

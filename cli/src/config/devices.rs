// SPDX-License-Identifier: MIT OR Apache-2.0
//! The IOMMU and the PCI devices of the lab machine: `iommu` in `[host]`, and `[[host.device]]`.

use std::path::PathBuf;

use clap::ValueEnum;
use serde::Deserialize;
use switch::Mac;

use crate::size::Size;

/// The IOMMU of the lab machine, with interrupt remapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Iommu {
    /// Devices reach all memory.
    #[default]
    None,
    /// AMD-Vi.
    Amd,
    /// Intel VT-d.
    Intel,
}

/// A PCI device of the lab machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Device {
    /// An NVMe disk.
    Nvme(Nvme),
    /// A network card.
    Network(Network),
    /// QEMU's educational device, which does DMA at any 64-bit address that it is given.
    Edu,
}

impl Device {
    /// Returns the word for it in `host.toml`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Nvme(_) => "nvme",
            Self::Network(network) => network.model.word(),
            Self::Edu => "edu",
        }
    }
}

/// An NVMe disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nvme {
    /// Its content.
    pub storage: Storage,
    /// Its serial number, unique in the machine.
    pub serial: String,
    /// The number of its SR-IOV virtual functions; 0: it has no SR-IOV capability.
    pub virtual_functions: u32,
}

/// The content of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// A raw image, which the machine changes.
    File(PathBuf),
    /// A file of this size that is removed when the machine has ended.
    Temporary(Size),
}

/// A network card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// The model.
    pub model: Model,
    /// The other end of its cable.
    pub backend: Backend,
    /// Its MAC address; without one the emulator numbers them.
    pub mac: Option<Mac>,
}

/// The model of a network card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Intel 82574L.
    E1000e,
    /// Intel 82576, with SR-IOV.
    Igb,
    /// virtio 1, behind the IOMMU (VIRTIO_F_ACCESS_PLATFORM).
    VirtioNet,
}

impl Model {
    fn word(self) -> &'static str {
        match self {
            Self::E1000e => "e1000e",
            Self::Igb => "igb",
            Self::VirtioNet => "virtio-net",
        }
    }
}

/// The other end of a network card's cable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The emulator's own network, with DHCP, DNS and NAT, and connections forwarded to the guest.
    User {
        /// QEMU's `hostfwd` rules: `tcp:127.0.0.1:2222-:22`.
        forward: Vec<String>,
    },
    /// A stream socket that waits for its peer.
    Listen(Address),
    /// A stream socket to a peer that listens.
    Connect(Address),
    /// A datagram socket: one frame each.
    Datagrams {
        /// This end.
        local: Address,
        /// The other end.
        remote: Address,
    },
    /// A TAP interface of this machine.
    Tap(String),
}

/// The address of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A host (a name, an IPv4 address, or an IPv6 address) and a port.
    Inet(String, u16),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

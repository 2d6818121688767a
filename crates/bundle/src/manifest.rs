// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's manifest: host.toml in compiled form.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::control::ControlKeyConfig;
pub use crate::file_record::FileRecord;
use crate::guest::GuestConfig;
use crate::network::NetworkConfig;

/// The name of the first entry.
pub const MANIFEST_NAME: &str = "manifest";

/// The first bytes of a manifest.
pub const MANIFEST_MAGIC: [u8; 4] = *b"BtnM";

/// Newest version of the manifest's encoding that is written and read. Any change to it raises the version. Versions 5
/// to 14 were never released, and are not read.
pub const MANIFEST_VERSION: u16 = 15;

/// Oldest version that is written and read: that of release 0.1.0. A manifest with no newer entry is written in
/// it, so that an update can lead to an image of that release and back.
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
    pub allow_downgrade: Option<bool>,
    /// The networks between guests.
    pub networks: Vec<NetworkConfig>,
    /// The keys that sign requests over the control channel; where there are any, other requests are refused.
    pub control_keys: Vec<ControlKeyConfig>,
    /// True if requests over a serial line may be unsigned all the same.
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

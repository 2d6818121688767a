// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manifest's entries for keys of the control channel.

use alloc::string::String;

use serde::{Deserialize, Serialize};

/// A key that operates the host over the control channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlKeyConfig {
    /// Its name for people: as a guest's, and no other key's.
    pub name: String,
    /// The Ed25519 public key. The first eight bytes differ from those of all others.
    pub key: [u8; 32],
    /// The role of its holder.
    pub role: ControlRole,
}

/// The rights of a control key's holder. Each role includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControlRole {
    /// Nothing: the host knows the key and refuses it by its name.
    Revoked,
    /// See everything but guests' memory and registers.
    Read,
    /// Operate guests, CPUs and PCI functions.
    Operate,
    /// Replace the hypervisor, restart the host, power it off.
    Update,
}

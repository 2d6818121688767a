// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boot bundle: everything a host needs besides its own image, in one file that any boot loader can hand over.
//!
//! A bundle is a cpio archive of the "newc" kind (what initramfs images are), so `cpio -t` lists it and firmware, GRUB
//! and QEMU load it as they load an initrd:
//!
//! ```text
//! manifest          what to run: the tool's host.toml, compiled ([`Manifest`])
//! <file>            a kernel, an initrd, a module: referred to by name
//! …
//! TRAILER!!!
//! ```
//!
//! The manifest lists every file with its length and CRC-32, so that the files can be checked one by one. The first
//! entry holds, little endian:
//!
//! | bytes | content |
//! |---|---|
//! | 4 | [`MANIFEST_MAGIC`] |
//! | 2 | its version: [`MANIFEST_VERSION`], or [`OLDEST_MANIFEST_VERSION`] where that can express it |
//! | n | the [`Manifest`], encoded as [`cbor`] states; in the oldest version, what it had then in postcard's encoding |
//! | 4 | CRC-32 (ISO HDLC) of the bytes above |
//!
//! [`Bundle::parse`] reads headers and manifest only: its cost does not grow with the size of the files, because every
//! millisecond at boot is counted. [`Bundle::verify`] checks one file's bytes; [`Bundle::guest_files`] finds the
//! files of one guest, so that a missing file does not keep other guests from running.
//!
//! A host's configuration changes while it runs ([`Settings`], [`Manifest::add`], [`Manifest::remove`]). The next image
//! gets it as a bundle, which [`Composer`] writes a piece at a time.
//!
//! A seal may stand behind the archive's trailer (`seal::judge_bundle`), which readers of the archive pass over.
//!
//! The bytes are untrusted input: nothing here panics, and every count and length is bounded ([`limits`]).
#![no_std]
#![warn(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod archive;
mod change;
mod checksum;
mod compose;
mod control;
mod cpu;
mod digest;
mod disk;
mod error;
mod file_record;
mod guest;
pub mod limits;
mod manifest;
mod network;
mod oldest;
mod read;
mod smbios;
mod uuid;
mod vsock;
pub mod write;

pub use change::{Refused, Settings};
pub use checksum::{Crc32, crc32};
pub use compose::{Composer, FileGone};
pub use control::{ControlKeyConfig, ControlRole};
pub use cpu::CpuModel;
pub use disk::{DiskConfig, DiskLimits};
pub use error::{BundleError, HeaderField, Problem};
pub use guest::{AssignedConfig, Devices, GuestConfig, OnPanic, Pmu, PmuEvent, VirtioDevices};
pub use manifest::{
    FileRecord, HostConfig, MANIFEST_MAGIC, MANIFEST_NAME, MANIFEST_VERSION, Manifest, OLDEST_MANIFEST_VERSION,
    WhenDone,
};
pub use network::{NetworkConfig, NicConfig, NicVlans};
pub use read::{Bundle, GuestFiles};
pub use smbios::{SmbiosConfig, is_text};
pub use uuid::{NotAUuid, Uuid};
pub use vsock::{ControlRights, GuestControl, VsockConfig};

#[cfg(test)]
mod tests;

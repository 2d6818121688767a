// SPDX-License-Identifier: MIT OR Apache-2.0
//! The drivers of the demo's disk and network card, for kernels that have them as modules.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use baton::config::{Config, Guest};
use baton::drivers::Drivers;
use tempfile::TempDir;

/// The disk's, and the card's. Debian's cloud kernel has the first built in.
const NAMES: [&str; 3] = ["nvme", "virtio_pci", "virtio_net"];
/// Where a kernel's package keeps its modules.
const MODULES: &str = "lib/modules";

/// Adds the modules to the initial RAM disk of each guest with functions and modules beside its kernel. Returns
/// the folder of their archives.
///
/// # Errors
/// A kernel without these drivers; modules that cannot be read.
pub(super) fn add(config: &mut Config) -> Result<TempDir> {
    let folder = tempfile::tempdir().context("no temporary folder can be made")?;
    for (index, guest) in config.guests.iter_mut().enumerate() {
        if let Some(kernel) = package_of(guest) {
            let archive = folder.path().join(format!("drivers-{index}.cpio"));
            fs::write(&archive, Drivers::of(kernel)?.archive(&NAMES)?)
                .with_context(|| format!("{} cannot be written", archive.display()))?;
            guest.modules.push(archive);
        }
    }
    Ok(folder)
}

/// Returns the folder in which the package of the guest's kernel is unpacked, if the guest has functions.
fn package_of(guest: &Guest) -> Option<&Path> {
    let folder = guest.kernel.parent()?;
    (!guest.functions.is_empty() && folder.join(MODULES).is_dir()).then_some(folder)
}

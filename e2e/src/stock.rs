// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stock Linux with drivers of disks and network cards: as a guest, and as the machine's own program, which is the
//! control of what a guest does.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use baton::config::Guest;
use lab::Machine;

use crate::host::Host;
use crate::place::{Kernel, built};
use crate::recipe::{Recipe, linux};

const INITRAMFS: &str = "guests/initramfs.cpio";

/// Writes an archive of a kernel's drivers to a folder.
pub fn archive(folder: &Path, kernel: Kernel, drivers: &[&str]) -> Result<PathBuf> {
    let path = folder.join("drivers.cpio");
    let content = kernel.drivers()?.archive(drivers)?;
    fs::write(&path, content).with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(path)
}

/// A guest with these drivers; their archive is written to `folder`. Its agent loads them, and then does `tasks`.
pub fn guest(folder: &Path, name: &str, kernel: Kernel, drivers: &[&str], tasks: &str) -> Result<Guest> {
    let mut guest = linux(name, kernel, &format!("drivers,{tasks}"))?;
    guest.modules.push(archive(folder, kernel, drivers)?);
    Ok(guest)
}

/// Starts the recipe's machine with Linux instead of Baton. Its console is what else is the host's log.
pub fn start(recipe: &Recipe, kernel: Kernel, drivers: &[&str], tasks: &str) -> Result<Host> {
    recipe.start_changed(None, |folder, machine| {
        let initramfs = folder.join("initramfs");
        let parts = [fs::read(built(INITRAMFS)?)?, fs::read(archive(folder, kernel, drivers)?)?];
        fs::write(&initramfs, parts.concat())?;
        let cmdline = format!("console=ttyS0 intel_iommu=on iommu.strict=1 agent=drivers,{tasks}");
        Ok(Machine { image: kernel.file()?, bundle: Some(initramfs), cmdline, ..machine })
    })
}

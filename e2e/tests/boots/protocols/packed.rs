// SPDX-License-Identifier: MIT OR Apache-2.0
//! The image in its packed form, which unpacks itself wherever a loader has put it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use baton::image::{linux, packed, sealed};
use e2e::place::{built, uefi};
use lab::Machine;

use super::{from_disc, recipe, runs_its_guest};
use crate::Rule;

pub const RULES: &[Rule] =
    &[("a_packed_image_starts_by_pvh", by_pvh), ("a_packed_image_starts_as_a_linux_kernel", as_a_linux_kernel)];

/// Those that want `grub-mkrescue`.
pub const GRUB_RULES: &[Rule] = &[("grub_starts_a_packed_image_elsewhere", elsewhere)];

/// Those that want UEFI firmware as well.
pub const UEFI_RULES: &[Rule] = &[("grub_starts_a_packed_image_on_uefi", on_uefi)];

fn plain() -> Result<Vec<u8>> {
    Ok(sealed(fs::read(built("baton.elf")?)?))
}

fn write(folder: &Path, file: &[u8]) -> Result<PathBuf> {
    let path = folder.join("packed");
    fs::write(&path, file)?;
    Ok(path)
}

fn by_pvh() -> Result<()> {
    let recipe = recipe()?;
    let mut host = recipe.start_changed(Some(&recipe.bundle()?), |folder, machine| {
        Ok(Machine { image: write(folder, &packed::packed(&plain()?)?)?, ..machine })
    })?;
    runs_its_guest(&mut host, "PVH", "0x200000")
}

/// From 1 MiB, so that it has to move first.
fn as_a_linux_kernel() -> Result<()> {
    let recipe = recipe()?;
    let mut host = recipe.start_changed(Some(&recipe.bundle()?), |folder, machine| {
        let plain = plain()?;
        let file = linux::packed_bzimage(&plain, &packed::packed(&plain)?)?;
        Ok(Machine { image: write(folder, &file)?, ..machine })
    })?;
    runs_its_guest(&mut host, "the Linux boot protocol", "0x200000")
}

/// From 64 MiB on, as its header then wants it.
fn elsewhere() -> Result<()> {
    const RELOCATABLE: [u8; 12] = [10, 0, 1, 0, 24, 0, 0, 0, 0, 0, 0x20, 0];
    let mut file = packed::packed(&plain()?)?;
    let at = file.windows(12).position(|window| window == RELOCATABLE).context("the image is relocatable")?;
    file[at + 8..at + 12].copy_from_slice(&0x400_0000_u32.to_le_bytes());
    let folder = e2e::recipe::folder()?;
    runs_its_guest(&mut from_disc(&write(folder.path(), &file)?, None)?, "Multiboot2", "0x4000000")
}

fn on_uefi() -> Result<()> {
    let folder = e2e::recipe::folder()?;
    let image = write(folder.path(), &packed::packed(&plain()?)?)?;
    runs_its_guest(&mut from_disc(&image, uefi())?, "Multiboot2", "0x200000")
}

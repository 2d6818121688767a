// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every protocol by which a loader enters the image, with the loaders that speak it: each host runs its guest. (PVH is
//! what all other tests boot by.)

pub mod packed;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use baton::image::{iso, linux};
use e2e::host::Host;
use e2e::place::{built, uefi};
use e2e::recipe::{Recipe, tiny};
use lab::{Ending, Machine};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("qemu_starts_it_as_a_linux_kernel", qemu_starts_it_as_a_linux_kernel),
    ("a_command_line_for_linux_may_be_long", a_command_line_for_linux_may_be_long),
];

/// For the long suite.
pub const LONG_RULES: &[Rule] = &[("ipxe_starts_it_from_the_network", ipxe_starts_it_from_the_network)];

/// Those that want `grub-mkrescue`.
pub const GRUB_RULES: &[Rule] = &[
    ("grub_starts_it_from_a_disc_on_a_bios", grub_starts_it_on_a_bios),
    ("grub_may_put_it_elsewhere", grub_may_put_it_elsewhere),
];

/// Those that want UEFI firmware as well.
pub const UEFI_RULES: &[Rule] = &[("grub_starts_it_from_a_disc_on_uefi", grub_starts_it_on_uefi)];

const GUEST: &str = "keeper";
/// Each host is replaced warm once its guest has ended: what the loader reported has to last.
const OPTIONS: &str = "log=debug restart-after-guests=2";

fn recipe() -> Result<Recipe> {
    Ok(Recipe::new().options(OPTIONS).powers_off().guest(tiny(GUEST, "keeper", "do=fresh")?))
}

/// The host came by the protocol that its log calls so, to this place; all CPUs and the guest run, in this image
/// and in the next.
fn runs_its_guest(host: &mut Host, protocol: &str, place: &str) -> Result<()> {
    host.logs(&[&format!("starts at {place}, loaded by {protocol}")])?;
    host.guest_prints(GUEST, "keeper: fresh: ok")?;
    ensure!(host.ending()? == Ending::PoweredOff, "{}", host.seen);
    // The guest's first report is gone where the tool is not heard by then: firmware may read what is meant for
    // the host.
    let well = format!("{GUEST} ended through its debug-exit port with 0x10");
    for text in ["CPUs: 2 online", &well] {
        let times = host.seen.host.iter().filter(|line| line.contains(text)).count();
        ensure!(times == 2, "{text:?} is there {times} times: {}", host.seen);
    }
    ensure!(host.seen.host_logged(&["generation 2, handed over"]), "{}", host.seen);
    ensure!(!host.seen.host_logged(&["firmware tables"]), "{}", host.seen);
    Ok(())
}

fn bzimage(folder: &Path) -> Result<PathBuf> {
    let path = folder.join("baton.bzimage");
    fs::write(&path, linux::bzimage(&fs::read(built("baton.elf")?)?)?)?;
    Ok(path)
}

/// By the BIOS and the image's 16-bit code, from 1 MiB, so that it has to move.
fn qemu_starts_it_as_a_linux_kernel() -> Result<()> {
    let recipe = recipe()?;
    let change = |folder: &Path, machine| Ok(Machine { image: bzimage(folder)?, ..machine });
    let mut host = recipe.start_changed(Some(&recipe.bundle()?), change)?;
    runs_its_guest(&mut host, "the Linux boot protocol", "0x200000")
}

fn a_command_line_for_linux_may_be_long() -> Result<()> {
    let recipe = recipe()?.options(&format!("{OPTIONS} {}", "cpus=2 ".repeat(250)));
    let change = |folder: &Path, machine| Ok(Machine { image: bzimage(folder)?, ..machine });
    let mut host = recipe.start_changed(Some(&recipe.bundle()?), change)?;
    runs_its_guest(&mut host, "the Linux boot protocol", "0x200000")
}

/// The network card's own iPXE gets a script, the image and the bundle from QEMU's TFTP server.
fn ipxe_starts_it_from_the_network() -> Result<()> {
    let recipe = recipe()?;
    let mut host = recipe.start_changed(Some(&recipe.bundle()?), |folder, machine| {
        bzimage(folder)?;
        let script = format!("#!ipxe\nkernel baton.bzimage {}\ninitrd bundle\nboot\n", machine.cmdline);
        fs::write(folder.join("boot.ipxe"), script)?;
        // There is nothing else to start from.
        let disc = folder.join("empty.iso");
        fs::write(&disc, [0; 2048])?;
        let network = format!("user,id=network,tftp={},bootfile=boot.ipxe", folder.display());
        let card = ["-netdev", &network, "-device", "e1000,netdev=network,bootindex=1"].map(Into::into);
        let extra = machine.extra.iter().cloned().chain(card).collect();
        Ok(Machine { disc: Some(disc), extra, ..machine })
    })?;
    runs_its_guest(&mut host, "the Linux boot protocol", "0x200000")
}

/// A disc with this image, started by `firmware` or the BIOS.
fn from_disc(image: &Path, firmware: Option<PathBuf>) -> Result<Host> {
    let recipe = recipe()?;
    recipe.start_changed(Some(&recipe.bundle()?), |folder, machine| {
        let (disc, bundle) = (folder.join("baton.iso"), machine.bundle.clone().context("a bundle")?);
        iso::build(image, &bundle, &machine.cmdline, &disc)?;
        let bios = firmware.into_iter().flat_map(|file| ["-bios".into(), file.into_os_string()]);
        let extra = machine.extra.iter().cloned().chain(bios).collect();
        Ok(Machine { disc: Some(disc), extra, ..machine })
    })
}

fn grub_starts_it_on_a_bios() -> Result<()> {
    runs_its_guest(&mut from_disc(&built("baton.elf")?, None)?, "Multiboot2", "0x200000")
}

fn grub_starts_it_on_uefi() -> Result<()> {
    let mut host = from_disc(&built("baton.elf")?, uefi())?;
    runs_its_guest(&mut host, "Multiboot2", "0x200000")
}

/// The image's header permits any address from 2 MiB on; here, from 64 MiB on.
fn grub_may_put_it_elsewhere() -> Result<()> {
    const RELOCATABLE: [u8; 12] = [10, 0, 1, 0, 24, 0, 0, 0, 0, 0, 0x20, 0];
    let mut image = fs::read(built("baton.elf")?)?;
    let at = image.windows(12).position(|window| window == RELOCATABLE).context("the image is relocatable")?;
    image[at + 8..at + 12].copy_from_slice(&0x400_0000_u32.to_le_bytes());
    let folder = e2e::recipe::folder()?;
    let path = folder.path().join("baton.elf");
    fs::write(&path, image)?;
    runs_its_guest(&mut from_disc(&path, None)?, "Multiboot2", "0x4000000")
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A running stock Linux is replaced by a host, with the distribution's kexec-tools.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use baton::image::linux;
use e2e::host::Host;
use e2e::place::{Emulator, Kernel, built, uefi};
use e2e::recipe::{Recipe, tiny};
use lab::initramfs::{self, Next};
use lab::{Ending, Machine};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("a_running_linux_is_replaced", || is_replaced("-c", 1024, None)),
    ("a_running_linux_is_replaced_by_the_other_system_call", || is_replaced("-s", 1024, None)),
    ("an_image_above_4_gib_comes_below", || is_replaced("-s", 6144, None)),
];

/// Those that want UEFI firmware.
pub const UEFI_RULES: &[Rule] = &[("a_linux_that_uefi_has_started_is_replaced", || is_replaced("-s", 1024, uefi()))];

const GUEST: &str = "keeper";
/// An emulated Linux may take this long to its /init, on a crowded machine.
const LIMIT: Duration = Duration::from_secs(400);

/// The host comes up on all CPUs, on whatever Linux has left behind, and runs its guest.
fn is_replaced(system_call: &str, memory_mib: u64, firmware: Option<PathBuf>) -> Result<()> {
    let emulator = if Emulator::Ten.is_here() { Emulator::Ten } else { Emulator::System };
    let recipe = Recipe::new().on(emulator).cpus(4).memory_mib(memory_mib).options("log=debug").powers_off();
    let recipe = recipe.guest(tiny(GUEST, "keeper", "do=fresh")?);
    let is_uefi = firmware.is_some();
    let mut host = recipe.start_changed(Some(&recipe.bundle()?), |folder, machine| {
        let machine = linux_first(folder, machine, system_call)?;
        let bios = firmware.into_iter().flat_map(|file| ["-bios".into(), file.into_os_string()]);
        let extra = machine.extra.iter().cloned().chain(bios).collect();
        Ok(Machine { extra, ..machine })
    })?;
    host.limit(LIMIT);
    host.logs(&["kexec-init: going"])?;
    host.logs(&["Baton", "loaded by the Linux boot protocol"])?;
    host.logs(&["CPUs: 4 online"])?;
    host.guest_prints(GUEST, "keeper: fresh: ok")?;
    ensure!(host.ending()? == Ending::PoweredOff, "{}", host.seen);
    is_well(&host, is_uefi)
}

/// Nothing of what Linux has left is complained of, and the place is one below 4 GiB.
fn is_well(host: &Host, is_uefi: bool) -> Result<()> {
    let start = host.seen.host.iter().position(|line| line.contains("Baton")).unwrap_or(0);
    let complaints: Vec<_> =
        host.seen.host[start..].iter().filter(|line| line.contains(" warn ") || line.contains(" error ")).collect();
    ensure!(complaints.is_empty(), "{complaints:#?}\n{}", host.seen);
    let was_uefi = host.seen.host_logged(&["efi: EFI v"]);
    ensure!(was_uefi == is_uefi, "started by UEFI: {was_uefi}");
    Ok(())
}

/// The same machine, but what it starts is Linux, which has kexec, the image and the bundle in its initial file system.
fn linux_first(folder: &Path, machine: Machine, system_call: &str) -> Result<Machine> {
    let kernel = if Kernel::V6_12.file().is_ok() { Kernel::V6_12 } else { Kernel::Default };
    let next = Next {
        kernel: linux::bzimage(&fs::read(&machine.image)?)?,
        initrd: machine.bundle.as_ref().map(fs::read).transpose()?.unwrap_or_default(),
        cmdline: machine.cmdline.clone(),
    };
    let initramfs = folder.join("initramfs");
    fs::write(&initramfs, initramfs::for_kexec(&fs::read(built("guests/kexec.cpio")?)?, &next)?)?;
    let cmdline = format!("console=ttyS0 kexec={system_call}");
    Ok(Machine { image: kernel.file()?, bundle: Some(initramfs), cmdline, ..machine })
}

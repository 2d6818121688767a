// SPDX-License-Identifier: MIT OR Apache-2.0
//! A running stock Linux is replaced by a host, with the distribution's kexec-tools.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use baton::config::{Device, Guest, Iommu, Model};
use baton::image::linux;
use e2e::host::Host;
use e2e::place::{Emulator, Kernel, built, uefi};
use e2e::recipe::{Recipe, tiny};
use lab::initramfs::{self, Next};
use lab::{Ending, Machine};

use super::Rule;
use super::assigned::assigned;
use super::devices::card;

pub const RULES: &[Rule] = &[
    ("a_running_linux_is_replaced", || is_replaced("-c", 1024, None)),
    ("a_running_linux_is_replaced_by_the_other_system_call", || is_replaced("-s", 1024, None)),
    ("an_image_above_4_gib_comes_below", || is_replaced("-s", 6144, None)),
];

/// Those that want UEFI firmware.
pub const UEFI_RULES: &[Rule] = &[("a_linux_that_uefi_has_started_is_replaced", || is_replaced("-s", 1024, uefi()))];

/// Those that want a kernel with the IOMMUs' drivers.
pub const DRIVER_LONG_RULES: &[Rule] = &[
    ("an_iommu_that_a_linux_had_enabled_is_taken_over_behind_amds_iommu", || iommu_is_taken_over(Iommu::Amd)),
    ("an_iommu_that_a_linux_had_enabled_is_taken_over_behind_intels_iommu", || iommu_is_taken_over(Iommu::Intel)),
];

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
        let kernel = if Kernel::V6_12.file().is_ok() { Kernel::V6_12 } else { Kernel::Default };
        let machine = linux_first(folder, kernel, machine, system_call)?;
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

/// Linux has translated transfers and remapped interrupts. The guest drives a function of its own, and reaches no
/// memory that is not the guest's.
fn iommu_is_taken_over(iommu: Iommu) -> Result<()> {
    let attack = "do=check,msi,attack at=0x100000000,0x3f00000,0xfee00000 expect=refused";
    let edu = Guest { functions: vec![assigned("1234:11e8", true)], ..tiny("edu", "edu", attack)? };
    let recipe = Recipe::new().cpus(2).with_devices(iommu, vec![Device::Edu, card(Model::E1000e)]).guest(edu);
    let mut host = recipe.start_changed(Some(&recipe.bundle()?), |folder, machine| {
        let machine = linux_first(folder, Kernel::V6_1Full, machine, "-s")?;
        Ok(Machine { cmdline: format!("{} intel_iommu=on iommu.strict=1", machine.cmdline), ..machine })
    })?;
    host.limit(LIMIT);
    let (enabled, unit) = match iommu {
        Iommu::Amd => ("AMD-Vi: Interrupt remapping enabled", "IOMMU: AMD-Vi at "),
        _ => ("DMAR-IR: Enabled IRQ remapping", "IOMMU: VT-d at "),
    };
    host.logs(&[enabled])?;
    host.logs(&["Baton", "loaded by the Linux boot protocol"])?;
    host.logs(&[unit, "isolates the functions behind it"])?;
    host.guest_prints("edu", "edu: msi halted n=1000 came=1000")?;
    host.guest_prints("edu", "edu: attack: ok")?;
    host.powers_off()
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
fn linux_first(folder: &Path, kernel: Kernel, machine: Machine, system_call: &str) -> Result<Machine> {
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

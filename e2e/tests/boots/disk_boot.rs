// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests that start the kernel that is installed on their own disk.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use baton::config::{Boot, Device, Guest, Iommu, Nvme, Storage};
use bundle::AssignedConfig;
use e2e::host::Host;
use e2e::place::{Kernel, built};
use e2e::recipe::{Recipe, folder, program};
use wire::RequestBody;

use super::Rule;
use super::disks;

pub const RULES: &[Rule] =
    &[("a_guest_starts_its_disk_s_kernel_and_after_a_reboot_a_newer_one", starts_what_is_installed)];

pub const LONG_RULES: &[Rule] = &[
    ("a_guest_starts_from_a_disk_that_another_guest_serves", starts_from_a_served_disk),
    ("a_disk_without_a_kernel_is_named_and_tried_again", waits_for_a_kernel),
];

const GUEST: &str = "web";
const SERIAL: &str = "root";
const NVME: &str = "1b36:0010";
/// Where its only partition begins, and its bytes.
const PARTITION_AT: u64 = 1 << 20;
const PARTITION_BYTES: u64 = 96 << 20;
const SECTOR_BYTES: u64 = 512;
/// A partition table of a personal computer: its entries, its signature, and the type of a partition of Linux's.
const ENTRIES_AT: usize = 446;
const SIGNATURE: (usize, [u8; 2]) = (510, [0x55, 0xaa]);
const LINUX_TYPE: u8 = 0x83;
const MEMORY_MIB: u64 = 384;
/// Two Linuxes boot, one after the other, on a machine that does other work as well.
const LIMIT: Duration = Duration::from_secs(300);

/// A disk with one partition on which these kernels are installed, and a boot loader that starts the first.
pub(super) struct Disk {
    file: PathBuf,
}

impl Disk {
    fn new(folder: &Path, kernels: &[Kernel]) -> Result<Self> {
        Self::with_initrd(folder, kernels, &std::fs::read(built("guests/initramfs.cpio")?)?)
    }

    /// The same, with this initial RAM disk.
    pub(super) fn with_initrd(folder: &Path, kernels: &[Kernel], initrd: &[u8]) -> Result<Self> {
        let (tree, file) = (folder.join("tree"), folder.join("disk.img"));
        std::fs::create_dir_all(tree.join("boot/grub"))?;
        for kernel in kernels {
            std::fs::copy(kernel.file()?, tree.join("boot").join(name_of(*kernel)))?;
        }
        std::fs::write(tree.join("boot/initrd.img"), initrd)?;
        std::fs::write(tree.join("boot/grub/grub.cfg"), configuration(kernels))?;
        let mut start = vec![0; PARTITION_AT as usize];
        start[ENTRIES_AT + 4] = LINUX_TYPE;
        let [first, sectors] =
            [PARTITION_AT, PARTITION_BYTES].map(|bytes| ((bytes / SECTOR_BYTES) as u32).to_le_bytes());
        start[ENTRIES_AT + 8..][..4].copy_from_slice(&first);
        start[ENTRIES_AT + 12..][..4].copy_from_slice(&sectors);
        start[SIGNATURE.0..][..2].copy_from_slice(&SIGNATURE.1);
        std::fs::write(&file, start)?;
        std::fs::File::options().write(true).open(&file)?.set_len(PARTITION_AT + PARTITION_BYTES)?;
        let options = format!("offset={PARTITION_AT}");
        let size = format!("{}k", PARTITION_BYTES >> 10);
        let mut made = Command::new("mke2fs");
        made.args(["-q", "-F", "-t", "ext4", "-E", &options, "-d"]).arg(tree).arg(&file).arg(size);
        runs(made)?;
        Ok(Self { file })
    }

    /// Has the boot loader start another kernel, as the installation of a newer one does.
    fn install(&self, folder: &Path, kernels: &[Kernel]) -> Result<()> {
        let text = folder.join("grub.cfg");
        std::fs::write(&text, configuration(kernels))?;
        for request in ["rm /boot/grub/grub.cfg".to_owned(), format!("write {} /boot/grub/grub.cfg", text.display())] {
            let mut changed = Command::new("debugfs");
            changed.args(["-w", "-R", &request, &format!("{}?offset={PARTITION_AT}", self.file.display())]);
            runs(changed)?;
        }
        Ok(())
    }

    /// Its image.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    fn device(&self) -> Device {
        let storage = Storage::File(self.file.clone());
        Device::Nvme(Nvme { storage, serial: SERIAL.to_owned(), virtual_functions: 0 })
    }
}

pub(super) fn runs(mut command: Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("{name} cannot be started; install e2fsprogs"))?;
    ensure!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn name_of(kernel: Kernel) -> String {
    format!("vmlinuz-{}", kernel.name())
}

/// `grub.cfg` with an entry for each kernel. With an IOMMU the machine has CMPXCHG16B, by which Linux 6.12 allocates
/// memory and QEMU 7.2 damages the flags ([`Recipe::new`]'s CPU): Linux does without it.
fn configuration(kernels: &[Kernel]) -> String {
    let entry = |kernel: &Kernel| {
        let (name, file) = (kernel.name(), name_of(*kernel));
        format!(
            "menuentry 'Linux {name}' --class debian $menuentry_id_option 'linux-{name}' {{\n\tinsmod ext2\n\
             \tlinux\t/boot/{file} console=ttyS0 loglevel=5 clearcpuid=cx16 agent=wait installed={name}\n\
             \tinitrd\t/boot/initrd.img\n}}\n"
        )
    };
    format!("set default=\"0\"\n{}", kernels.iter().map(entry).collect::<String>())
}

/// A guest that starts from the disk with this serial number.
fn guest(serial: &str) -> Result<Guest> {
    let mut guest = program(GUEST, Kernel::Default.file()?);
    guest.memory = baton::size::Size::mebibytes(MEMORY_MIB);
    guest.cmdline = "console=ttyS0 loglevel=5".to_owned();
    guest.boot =
        Boot::Disk { drivers: Kernel::Default.drivers()?.folder().to_owned(), serial: Some(serial.to_owned()) };
    Ok(guest)
}

/// A machine with a guest that has the disk itself.
fn recipe(disk: &Disk) -> Result<Recipe> {
    let selector = NVME.to_owned();
    let functions = vec![AssignedConfig { selector, without_reset: false, gsi: None, virtual_functions: 0 }];
    let recipe = Recipe::new().memory_mib(1024).with_devices(Iommu::Amd, vec![disk.device()]);
    Ok(recipe.guest(Guest { functions, ..guest(SERIAL)? }))
}

/// The guest is in the userspace of this kernel, which the loader has started.
fn runs_kernel(host: &mut Host, kernel: Kernel) -> Result<()> {
    host.guest_prints(GUEST, &format!("starting \"Linux {}\"", kernel.name()))?;
    host.guest_prints(GUEST, "baton-agent: init reached")?;
    host.guest_prints(GUEST, &format!("  system      Linux {}.", kernel.name()))
}

fn starts_what_is_installed() -> Result<()> {
    let folder = folder()?;
    let disk = Disk::new(folder.path(), &[Kernel::V6_12, Kernel::V6_1])?;
    let mut host = recipe(&disk)?.start()?;
    host.limit(LIMIT);
    runs_kernel(&mut host, Kernel::V6_12)?;
    disk.install(folder.path(), &[Kernel::V6_1, Kernel::V6_12])?;
    host.update_to(2)?;
    host.client()?.request(RequestBody::VmReset { name: GUEST.to_owned() })?;
    runs_kernel(&mut host, Kernel::V6_1)?;
    host.powers_off()
}

fn starts_from_a_served_disk() -> Result<()> {
    let folder = folder()?;
    let disk = Disk::new(folder.path(), &[Kernel::V6_1])?;
    let mut host = disks::serving(folder.path(), disk.device(), guest(disks::SERIAL)?)?.start()?;
    host.limit(LIMIT);
    runs_kernel(&mut host, Kernel::V6_1)?;
    host.powers_off()
}

fn waits_for_a_kernel() -> Result<()> {
    let folder = folder()?;
    let disk = Disk::new(folder.path(), &[])?;
    let mut host = recipe(&disk)?.start()?;
    host.limit(LIMIT);
    host.guest_prints(GUEST, "nvme0n1p1: grub.cfg offers no Linux kernel")?;
    disk.install(folder.path(), &[Kernel::V6_1])?;
    // The kernel is not there either.
    host.guest_prints(GUEST, "nvme0n1p1: /boot/vmlinuz-6.1, which its configuration names, is not there")?;
    host.powers_off()
}

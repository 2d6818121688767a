// SPDX-License-Identifier: MIT OR Apache-2.0
//! Equipment of this machine for tests.

use std::env;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use baton::drivers::Drivers;
use baton::paths::workspace;
use lab::bochs::Bochs;
use lab::default_qemu;

/// An emulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emulator {
    /// The one on the path (Debian 12: QEMU 7.2; its emulated APIC has no x2APIC mode).
    System,
    /// QEMU 10, which emulates x2APIC.
    Ten,
    /// Bochs, which is no QEMU.
    Bochs,
}

impl Emulator {
    /// For test names.
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system-qemu",
            Self::Ten => "qemu-10",
            Self::Bochs => "bochs",
        }
    }

    /// The program.
    pub fn program(self) -> Result<PathBuf> {
        match self {
            Self::System => Ok(default_qemu(None)),
            Self::Ten => built("qemu-10/qemu-system-x86_64"),
            Self::Bochs => Ok(Bochs::default().program),
        }
    }

    /// Returns whether it is here.
    pub fn is_here(self) -> bool {
        match self {
            Self::System => true,
            Self::Ten => self.program().is_ok(),
            Self::Bochs => lab::bochs::is_here() && has_grub(),
        }
    }
}

/// A stock Linux kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// The release's own, whichever that is.
    Default,
    /// Linux 6.1.
    V6_1,
    /// Linux 6.12.
    V6_12,
    /// Linux 6.1 with the drivers of real network cards and both vendors' IOMMUs.
    V6_1Full,
}

impl Kernel {
    /// For test names; also the folder under `target/kernels`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::V6_1 => "6.1",
            Self::V6_12 => "6.12",
            Self::V6_1Full => "6.1-full",
        }
    }

    /// Its drivers.
    pub fn drivers(self) -> Result<Drivers> {
        Drivers::of(&workspace()?.join("target/kernels").join(self.name()))
    }

    /// Its bzImage.
    pub fn file(self) -> Result<PathBuf> {
        built(&format!("kernels/{}/vmlinuz", self.name()))
    }
}

/// UEFI firmware for the emulator, where it is installed (Debian: ovmf).
pub fn uefi() -> Option<PathBuf> {
    let file = PathBuf::from("/usr/share/ovmf/OVMF.fd");
    file.is_file().then_some(file)
}

/// Returns whether discs can be made here that GRUB starts.
pub fn has_grub() -> bool {
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders).any(|folder| folder.join("grub-mkrescue").is_file())
}

/// Returns whether there is a Linux that can be replaced by kexec.
pub fn has_kexec() -> bool {
    built("guests/kexec.cpio").is_ok()
}

/// Returns whether there is an initramfs of nbdkit.
pub fn has_nbdkit() -> bool {
    built("guests/nbdkit.cpio").is_ok()
}

/// Returns whether there is a guest with Linux's own perf.
pub fn has_perf() -> bool {
    built("guests/perf.cpio").is_ok()
}

/// One of the images that the build makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// The image that operators run.
    Shipped,
    /// The test image: it has fault points, and takes `selftest=`.
    WithFaultPoints,
}

impl Build {
    /// Its file.
    pub fn file(self) -> Result<PathBuf> {
        built(match self {
            Self::Shipped => "baton.elf",
            Self::WithFaultPoints => "baton-faults.elf",
        })
    }
}

/// A file that set-up or build made: `target/<path>`.
pub fn built(path: &str) -> Result<PathBuf> {
    let file = workspace()?.join("target").join(path);
    let found = file.is_file().then(|| file.clone());
    found.with_context(|| format!("{} is not there: run `make test`, or scripts/build.sh", file.display()))
}

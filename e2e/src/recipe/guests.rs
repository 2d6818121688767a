// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests, as tests usually have them.

use std::path::PathBuf;

use anyhow::Result;
use baton::config::Guest;
use baton::size::Size;
use bundle::{CpuModel, OnPanic, Pmu, SmbiosConfig, VirtioDevices};

use crate::place::{Kernel, built};

/// Memory of a Linux guest.
const LINUX_MEMORY: Size = Size::mebibytes(256);
/// Memory of a guest of ours that is only a program.
const TINY_MEMORY: Size = Size::mebibytes(16);

/// A Linux guest whose agent does `tasks` (`guests/README.md`).
pub fn linux(name: &str, kernel: Kernel, tasks: &str) -> Result<Guest> {
    let initrd = Some(built("guests/initramfs.cpio")?);
    // Warnings, and all that is worse: what else it has to report costs a quarter of its boot in exits.
    let cmdline = format!("console=ttyS0 loglevel=5 agent={tasks}");
    Ok(Guest { initrd, cmdline, memory: LINUX_MEMORY, ..program(name, kernel.file()?) })
}

/// A guest that is one of our own programs, `target/guests/<program>.elf`, with a debug-exit port.
pub fn tiny(name: &str, file: &str, cmdline: &str) -> Result<Guest> {
    let kernel = built(&format!("guests/{file}.elf"))?;
    Ok(Guest { cmdline: cmdline.to_owned(), debug_exit: true, ..program(name, kernel) })
}

/// A guest with any file as its kernel.
pub fn program(name: &str, kernel: PathBuf) -> Guest {
    Guest {
        name: name.to_owned(),
        kernel,
        initrd: None,
        modules: Vec::new(),
        cmdline: String::new(),
        vcpus: 1,
        memory: TINY_MEMORY,
        debug_exit: false,
        weight: 100,
        on_panic: OnPanic::default(),
        hung_s: 10,
        pmu: Pmu::Off,
        pmu_events: None,
        autostart: true,
        functions: Vec::new(),
        virtio: VirtioDevices::default(),
        nics: Vec::new(),
        vsock: None,
        cpu: CpuModel::Host,
        smbios: SmbiosConfig::default(),
        disks: Vec::new(),
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests, as tests usually have them.

use std::path::PathBuf;

use anyhow::Result;
use baton::config::Guest;
use baton::size::Size;

use crate::place::{Kernel, built};

/// Memory of a Linux guest.
const LINUX_MEMORY: Size = Size::mebibytes(256);
/// Memory of a guest of ours that is only a program.
const TINY_MEMORY: Size = Size::mebibytes(16);

/// A Linux guest with an agent that does `tasks` (`guests/README.md`).
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
    Guest::new(name, kernel, TINY_MEMORY)
}

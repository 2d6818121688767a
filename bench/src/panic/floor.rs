// SPDX-License-Identifier: MIT OR Apache-2.0
//! The emulator's floor: a machine whose processors all halt with interrupts off.

use std::fs;
use std::process::Command;
use std::sync::mpsc;

use anyhow::{Context as _, Result, bail};
use lab::{Line, Process};

use super::MEMORY;
use super::linux::Ended;
use crate::Context;

/// `mov dx, 0x3f8; mov al, 'F'; out dx, al`, then `xor cx, cx; loop` until the UART has room again,
/// `mov al, 10; out dx, al`, and for ever `cli; hlt; jmp`.
const PROGRAM: [u8; 17] =
    [0xba, 0xf8, 0x03, 0xb0, b'F', 0xee, 0x31, 0xc9, 0xe2, 0xfe, 0xb0, 10, 0xee, 0xfa, 0xf4, 0xeb, 0xfc];
/// The firmware reads no smaller disk.
const DISK_BYTES: usize = 1 << 20;
const SECTOR_BYTES: usize = 512;

/// Processor seconds of such a machine.
pub(super) fn seconds(context: &Context, processors: u32) -> Result<f64> {
    let folder = tempfile::tempdir().context("no temporary folder can be made")?;
    let disk = folder.path().join("disk");
    fs::write(&disk, disk_image())?;
    let mut command = Command::new(&context.qemu);
    command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "q35"]);
    command.args(["-accel", "tcg", "-cpu", "max", "-smp", &processors.to_string()]);
    command.args(["-m", &format!("{}M", MEMORY.bytes >> 20)]);
    // The emulator's option parser wants commas doubled.
    let path = disk.to_string_lossy().replace(',', ",,");
    command.args(["-drive", &format!("file={path},format=raw,if=ide,readonly=off")]);
    command.args(["-chardev", "stdio,id=log,signal=off", "-serial", "chardev:log"]);
    let (sender, lines) = mpsc::channel();
    let process = Process::spawn(command, move |line: Line| drop(sender.send(line.text)))
        .with_context(|| format!("{} cannot be started", context.qemu.display()))?;
    let guard = Ended(process);
    while let Ok(line) = lines.recv_timeout(context.timeout) {
        if line.contains('F') {
            return super::seconds(guard.0.pid());
        }
    }
    bail!("a machine that only halts did not start within {:?}", context.timeout)
}

fn disk_image() -> Vec<u8> {
    let mut disk = vec![0; DISK_BYTES];
    disk[..PROGRAM.len()].copy_from_slice(&PROGRAM);
    disk[SECTOR_BYTES - 2..SECTOR_BYTES].copy_from_slice(&[0x55, 0xaa]);
    disk
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_can_be_booted() {
        let disk = disk_image();
        assert_eq!((disk.len(), disk[510], disk[511]), (DISK_BYTES, 0x55, 0xaa));
        // The jump leads back to the CLI.
        assert_eq!(PROGRAM[PROGRAM.len().wrapping_add_signed(PROGRAM[16] as i8 as isize)], 0xfa);
    }
}

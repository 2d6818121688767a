// SPDX-License-Identifier: MIT OR Apache-2.0
//! The emulator's floor: a machine with all CPUs halted and interrupts disabled.

use std::fs;

use anyhow::Result;

use super::MEMORY;
use crate::Context;
use crate::direct::{self, Direct};
use crate::setup::temporary_folder;

/// `mov dx, 0x3f8; mov al, 'F'; out dx, al`, then `xor cx, cx; loop` until the UART has room again,
/// `mov al, 10; out dx, al`, and for ever `cli; hlt; jmp`.
const PROGRAM: [u8; 17] =
    [0xba, 0xf8, 0x03, 0xb0, b'F', 0xee, 0x31, 0xc9, 0xe2, 0xfe, 0xb0, 10, 0xee, 0xfa, 0xf4, 0xeb, 0xfc];
/// The firmware reads no smaller disk.
const DISK_BYTES: usize = 1 << 20;
const SECTOR_BYTES: usize = 512;

/// Returns the CPU seconds of such a machine.
pub(super) fn seconds(context: &Context, cpus: u32) -> Result<f64> {
    let folder = temporary_folder()?;
    let disk = folder.path().join("disk");
    fs::write(&disk, disk_image())?;
    let mut command = direct::command(context, cpus, &format!("{}M", MEMORY.bytes >> 20));
    // The emulator's option parser wants commas doubled.
    let path = disk.to_string_lossy().replace(',', ",,");
    command.args(["-drive", &format!("file={path},format=raw,if=ide,readonly=off")]);
    let mut machine = Direct::start(context, command)?;
    machine.wait("the boot sector's letter", |_, line| line.contains('F').then_some(()))?;
    super::seconds(machine.pid())
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

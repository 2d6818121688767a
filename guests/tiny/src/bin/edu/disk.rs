// SPDX-License-Identifier: MIT OR Apache-2.0
//! An NVMe disk that is reset by Device Control (PCI Express Base 5.0, section 6.6.2), over and over: `edu` itself has
//! no such reset. Its registers are in NVM Express Base 1.4, section 3.1.

use tiny::answers::{Wrong, expect, expect_that};
use tiny::boot::free_memory;
use tiny::{cpu, options, print};

use crate::clock::{PERIOD_MS, Waiting, pause, periods, wait};
use crate::config::{BAR, BUS_MASTER, COMMAND, Function, IDENTITY, MEMORY};
use crate::device::is_alive;
use crate::registers::{CAN_BE_RESET, EXPRESS, INITIATE_RESET};
use crate::request::Request;

/// Device and vendor identifier of QEMU's disk.
const DISK: u32 = 0x0010_1b36;
/// The address of its registers: free in the PCI hole of QEMU's q35 and of Baton's guests.
const PLACE: u32 = 0xca00_0000;
const CONFIGURATION: u64 = 0x14;
const STATUS: u64 = 0x1c;
const ADMIN_QUEUES: u64 = 0x24;
const SUBMISSIONS: u64 = 0x28;
const COMPLETIONS: u64 = 0x30;
/// Enabled, with entries of 64 and 16 bytes.
const ENABLED: u32 = 4 << 20 | 6 << 16 | 1;
const READY: u32 = 1;
/// Two queues of 32 entries, and where they are.
const QUEUES: u32 = 31 << 16 | 31;
const QUEUE_BYTES: u64 = 4096;
/// The time in which a function may not be accessed after its reset, and after which one is given up.
const RESET_DELAY_MS: u32 = 100;
const LIMIT_MS: u32 = 5_000;
/// Resets unless stated otherwise.
const ROUNDS: u64 = 20;

/// Enables the disk and resets it: it is disabled, has no place, and works again. `expect=gone`: it does not come back
/// from its first reset.
pub fn resets(request: &Request<'_>) -> Result<(), Wrong> {
    let bus = request.edu.function.bus;
    let disk = Function::find(bus, DISK).ok_or(Wrong::new("disk on bus", bus.into(), 0))?;
    let express = disk.capability(EXPRESS).filter(|at| disk.read(at + 4) & CAN_BE_RESET != 0);
    let control = express.ok_or(Wrong::new("function level reset of disk on bus", bus.into(), 0))? + 8;
    let mut longest_ms = 0;
    for round in 0..request.rounds.unwrap_or(ROUNDS) {
        enable(disk)?;
        let began = periods();
        disk.write(control, disk.read(control) & 0xffff | INITIATE_RESET);
        if options::value(request.command_line, "expect") == Some("gone") {
            return stays_away(disk);
        }
        pause(RESET_DELAY_MS);
        wait(Waiting::Halted, LIMIT_MS, || disk.read(IDENTITY) != u32::MAX);
        expect("identity after reset", round, disk.read(IDENTITY).into(), DISK.into())?;
        longest_ms = longest_ms.max((periods() - began) * PERIOD_MS);
        expect("command after reset", round, (disk.read(COMMAND) & 0xffff).into(), 0)?;
        expect("range after reset", round, (disk.read(BAR) & !0xf).into(), 0)?;
        place(disk);
        expect("status after reset", round, (read(STATUS) & READY).into(), 0)?;
        is_alive()?;
        print!("edu: disk: reset {round}\n");
    }
    print!("edu: disk: longest_ms={longest_ms}\n");
    Ok(())
}

fn stays_away(disk: Function) -> Result<(), Wrong> {
    let is_back = wait(Waiting::Halted, LIMIT_MS, || disk.read(IDENTITY) != u32::MAX);
    print!("edu: disk: {}\n", if is_back { "there" } else { "gone" });
    expect_that("absence of the disk", 0, u64::from(is_back), !is_back)?;
    is_alive()
}

fn place(disk: Function) {
    disk.change_command(MEMORY | BUS_MASTER, 0);
    disk.write(BAR, PLACE);
    disk.write(BAR + 4, 0);
    disk.change_command(0, MEMORY | BUS_MASTER);
}

/// Lets it work on queues in free memory, until it reports that it does.
fn enable(disk: Function) -> Result<(), Wrong> {
    place(disk);
    let queues = free_memory().start.next_multiple_of(QUEUE_BYTES);
    write(CONFIGURATION, 0);
    write(ADMIN_QUEUES, QUEUES);
    for (register, address) in [(SUBMISSIONS, queues), (COMPLETIONS, queues + QUEUE_BYTES)] {
        write(register, address as u32);
        write(register + 4, (address >> 32) as u32);
    }
    write(CONFIGURATION, ENABLED);
    let is_ready = wait(Waiting::Halted, LIMIT_MS, || read(STATUS) & READY != 0);
    expect_that("status of the disk that is enabled", STATUS, read(STATUS).into(), is_ready)
}

fn read(register: u64) -> u32 {
    cpu::read_memory(u64::from(PLACE) + register)
}

fn write(register: u64, value: u32) {
    cpu::write_memory(u64::from(PLACE) + register, value);
}

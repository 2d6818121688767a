// SPDX-License-Identifier: MIT OR Apache-2.0
//! Configuration registers written without sense, and the resets that a function has.

use tiny::answers::{Wrong, expect, expect_that};
use tiny::random::Random;
use tiny::{cpu, print};

use crate::acpi;
use crate::clock::pause;
use crate::config::{BAR, COMMAND, Function, IDENTITY};
use crate::device::{self, Edu, is_alive};
use crate::request::Request;

/// Registers of configuration space: those that ports reach, and all.
const BY_PORTS: u64 = 0x100;
const ALL: u64 = 0x1000;
const CLASS: u16 = 0x08;
/// Writes unless stated otherwise.
const ROUNDS: u64 = 20_000;

/// PCI Express (PCI Express Base 5.0, section 7.5.3).
pub const EXPRESS: u8 = 0x10;
/// Power management (PCI Power Management 1.2, section 3.2) and advanced features (Advanced Capabilities for
/// Conventional PCI, section 2.1).
const POWER: u8 = 0x01;
const ADVANCED: u8 = 0x13;
/// Device Capabilities: the function can be reset by itself.
pub const CAN_BE_RESET: u32 = 1 << 28;
/// Device Control: it is.
pub const INITIATE_RESET: u32 = 1 << 15;
/// The same in the registers of advanced features.
const ADVANCED_CAN_BE_RESET: u32 = 1 << 25;
const D3_HOT: u32 = 3;
/// Longest time of a reset.
const RESET_MS: u32 = 100;

/// Writes registers in a random order with random values of all widths, by both mechanisms. Afterwards it is the same
/// device, and it works once its registers are set.
pub fn junk(request: &Request<'_>) -> Result<(), Wrong> {
    let Edu { function, .. } = request.edu;
    let read_only = [IDENTITY, CLASS];
    let before = read_only.map(|register| function.read(register));
    let (ecam, mut random) = (acpi::ecam(), Random::new(request.seed));
    device::set_place(0);
    for _ in 0..request.rounds.unwrap_or(ROUNDS) {
        write_one(function, ecam, random.draw(), random.draw());
    }
    let after = read_only.map(|register| function.read(register));
    recover(request)?;
    for (register, (after, before)) in read_only.into_iter().zip(after.into_iter().zip(before)) {
        expect("read-only register", register.into(), after.into(), before.into())?;
    }
    is_alive()
}

fn write_one(function: Function, ecam: Option<u64>, place: u64, value: u64) {
    // Runs of zeros and ones are as likely as bits without order.
    let value = match place >> 60 {
        0..4 => 0,
        4..8 => u64::MAX,
        8..12 => 1 << (value % 64),
        _ => value,
    };
    match ecam.filter(|_| place >> 32 & 1 != 0) {
        None => function.write_narrow((place % BY_PORTS) as u16, 1 << (place >> 40 & 3).min(2), value as u32),
        Some(ecam) => {
            let width = 1 << (place >> 40 & 3);
            write_width(function.enhanced(ecam, (place % ALL / width * width) as u16), width, value);
        }
    }
}

fn write_width(address: u64, bytes: u64, value: u64) {
    // SAFETY: configuration space is no object of Rust's; the address is a multiple of the width.
    unsafe {
        match bytes {
            1 => (address as *mut u8).write_volatile(value as u8),
            2 => (address as *mut u16).write_volatile(value as u16),
            4 => cpu::write_memory(address, value as u32),
            _ => (address as *mut u64).write_volatile(value),
        }
    }
}

/// Sets all registers that make it work, after whatever has happened to them.
fn recover(request: &Request<'_>) -> Result<(), Wrong> {
    let Edu { function, address } = request.edu;
    if let Some(register) = function.capability(POWER) {
        function.write(register + 4, 0);
        pause(RESET_MS);
    }
    crate::interrupts::end_messages(function);
    function.write(COMMAND, 0);
    function.write(BAR, address);
    device::start(function.bus).map(|_| ())
}

/// Resets the function in each way that it has: its registers are as after power-on, and it works again.
pub fn reset(request: &Request<'_>) -> Result<(), Wrong> {
    let function = request.edu.function;
    let express = function.capability(EXPRESS).filter(|at| function.read(at + 4) & CAN_BE_RESET != 0);
    let advanced = function.capability(ADVANCED).filter(|&at| function.read(at) & ADVANCED_CAN_BE_RESET != 0);
    let mut ways = 0;
    if let Some(at) = express {
        ways += 1;
        is_reset(request, "express", at + 8, |control| function.write(at + 8, control | INITIATE_RESET))?;
    }
    if let Some(at) = advanced {
        ways += 1;
        is_reset(request, "advanced", at + 4, |control| function.write(at + 4, control | 1))?;
    }
    if let Some(at) = function.capability(POWER) {
        ways += 1;
        is_reset(request, "power", at + 4, |control| {
            function.write(at + 4, control | D3_HOT);
            pause(RESET_MS);
            function.write(at + 4, control & !D3_HOT);
        })?;
    }
    print!("edu: reset: ways={ways}\n");
    Ok(())
}

fn is_reset(request: &Request<'_>, name: &str, control: u16, act: impl FnOnce(u32)) -> Result<(), Wrong> {
    let function = request.edu.function;
    device::set_place(0);
    act(function.read(control) & 0xffff);
    pause(RESET_MS);
    let (command, range) = (function.read(COMMAND) & 0xffff, function.read(BAR));
    print!("edu: reset: by {name}: command={command:#x} range={range:#x}\n");
    expect_that("identity after a reset", 0, function.read(IDENTITY).into(), function.read(IDENTITY) != u32::MAX)?;
    recover(request)?;
    expect("command register after a reset", COMMAND.into(), command.into(), 0)?;
    is_alive()
}

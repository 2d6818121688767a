// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device's registers (QEMU, docs/specs/edu.rst), and how it is found and started.

use core::sync::atomic::{AtomicU64, Ordering};

use tiny::answers::{Wrong, expect, expect_that};
use tiny::{cpu, print};

use crate::acpi;
use crate::config::{BAR, BUS_MASTER, Function, IDENTITY, MEMORY};

/// Device 11e8 of vendor 1234.
pub const EDU: u32 = 0x11e8_1234;
/// The address of its range if no firmware has placed it: in the PCI hole of Baton's guests and of QEMU's q35.
const OWN_PLACE: u32 = 0xc800_0000;
/// Bytes of its range of registers.
pub const RANGE_BYTES: u32 = 1 << 20;
/// Low bits of a base address register of memory.
const FLAGS: u32 = 0xf;

/// A 32-bit register, by its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// Version, and 0xed.
    Identification = 0x00,
    /// Reads as the complement of what was written.
    Liveness = 0x04,
    /// Takes a number, and becomes its factorial.
    Factorial = 0x08,
    /// Bit 0: it computes; bit 7: its end interrupts.
    Status = 0x20,
    /// Causes of interrupts that are not acknowledged.
    InterruptStatus = 0x24,
    /// Adds causes, and interrupts.
    RaiseInterrupt = 0x60,
    /// Takes causes away.
    AcknowledgeInterrupt = 0x64,
}

/// A 64-bit register of its DMA engine, by its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dma {
    /// Address that is read.
    Source = 0x80,
    /// Address that is written.
    Destination = 0x88,
    /// Bytes.
    Count = 0x90,
    /// Starts a transfer, and reports its end.
    Command = 0x98,
}

/// Status: a factorial is being computed.
pub const COMPUTING: u32 = 1;
/// Status: its end interrupts.
pub const FACTORIAL_INTERRUPTS: u32 = 1 << 7;

/// Address of the registers; 0 while they are nowhere.
static REGISTERS: AtomicU64 = AtomicU64::new(0);

/// Returns whether the registers are at their place.
pub fn is_placed() -> bool {
    REGISTERS.load(Ordering::Relaxed) != 0
}

/// Sets where the registers are; 0 for nowhere, in which time no interrupt may touch them.
pub fn set_place(address: u64) {
    REGISTERS.store(address, Ordering::Relaxed);
}

/// Reads a register.
pub fn read(register: Register) -> u32 {
    cpu::read_memory(REGISTERS.load(Ordering::Relaxed) + register as u64)
}

/// Writes a register.
pub fn write(register: Register, value: u32) {
    cpu::write_memory(REGISTERS.load(Ordering::Relaxed) + register as u64, value);
}

/// Reads a register of the DMA engine.
pub fn read_dma(register: Dma) -> u64 {
    let address = REGISTERS.load(Ordering::Relaxed) + register as u64;
    // SAFETY: the registers are no objects of Rust's; all of the first 4 GiB is mapped.
    unsafe { (address as *const u64).read_volatile() }
}

/// Writes a register of the DMA engine.
pub fn write_dma(register: Dma, value: u64) {
    let address = REGISTERS.load(Ordering::Relaxed) + register as u64;
    // SAFETY: as read_dma. The caller chooses what the device then does to memory.
    unsafe { (address as *mut u64).write_volatile(value) };
}

/// The function, and where its range is.
#[derive(Clone, Copy, Debug)]
pub struct Edu {
    /// Its configuration space.
    pub function: Function,
    /// The address of its range.
    pub address: u32,
}

/// Finds the device on a bus, places its range if no firmware has, and lets it decode and reach memory.
pub fn start(bus: u8) -> Result<Edu, Wrong> {
    let found = Function::find(bus, EDU);
    let function = found.ok_or(Wrong::new("edu on bus", bus.into(), 0))?;
    function.change_command(MEMORY | BUS_MASTER, 0);
    let placed = function.read(BAR);
    let bytes = size(function, placed);
    expect("bytes of base address register", BAR.into(), bytes.into(), RANGE_BYTES.into())?;
    let address = if placed & !FLAGS == 0 { OWN_PLACE } else { placed & !FLAGS };
    function.write(BAR, address);
    expect("base address register", BAR.into(), (function.read(BAR) & !FLAGS).into(), address.into())?;
    function.change_command(0, MEMORY | BUS_MASTER);
    set_place(address.into());
    let Function { bus, slot } = function;
    print!("edu: found at {bus:02x}:{:02x}.{} range={address:#x} bytes={bytes:#x}\n", slot >> 3, slot & 7);
    Ok(Edu { function, address })
}

/// The bytes of a range: the lowest address bit that can be set (PCI Local Bus 3.0, section 6.2.5.1).
fn size(function: Function, placed: u32) -> u32 {
    function.write(BAR, u32::MAX);
    let mask = function.read(BAR) & !FLAGS;
    function.write(BAR, placed);
    mask & mask.wrapping_neg()
}

/// The device answers as its specification has it, and both ways to its configuration space agree.
pub fn check(edu: &Edu) -> Result<(), Wrong> {
    is_alive()?;
    (1_u32..=12).try_for_each(|number| {
        let wanted: u32 = (1..=number).product();
        expect("factorial of", number.into(), factorial(number)?.into(), wanted.into())
    })?;
    let Some(ecam) = acpi::ecam() else {
        print!("edu: there is no enhanced configuration mechanism\n");
        return Ok(());
    };
    (IDENTITY..0x40).step_by(4).try_for_each(|register| {
        let enhanced = cpu::read_memory(edu.function.enhanced(ecam, register));
        let by_port = edu.function.read(register);
        expect("register by enhanced mechanism", register.into(), enhanced.into(), by_port.into())
    })
}

/// The identification is there, and the liveness register works.
pub fn is_alive() -> Result<(), Wrong> {
    let identification = read(Register::Identification);
    expect_that("identification", 0, identification.into(), identification & 0xff == 0xed)?;
    [0, 0x1234_5678, u32::MAX].into_iter().try_for_each(|value| {
        write(Register::Liveness, value);
        expect("liveness of", value.into(), read(Register::Liveness).into(), (!value).into())
    })
}

/// Computes a factorial without an interrupt.
fn factorial(number: u32) -> Result<u32, Wrong> {
    const PATIENCE: u32 = 10_000_000;
    write(Register::Status, 0);
    write(Register::Factorial, number);
    let ended = (0..PATIENCE).any(|_| read(Register::Status) & COMPUTING == 0);
    expect_that("end of the factorial of", number.into(), 0, ended)?;
    Ok(read(Register::Factorial))
}

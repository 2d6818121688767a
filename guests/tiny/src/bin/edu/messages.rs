// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages to addresses and with data of all kinds.

use tiny::answers::{Wrong, expect, expect_that};
use tiny::attempt::attempt;
use tiny::boot::free_memory;
use tiny::{interrupts, options, print};

use crate::clock::{self, Waiting, pause};
use crate::config::Function;
use crate::device::{self, Register};
use crate::interrupts::{MESSAGE_ADDRESS, MESSAGE_VECTOR, came, own_address, set_message, use_messages};
use crate::request::Request;
use crate::transfer::{NEEDED, SINK, read, write};

/// Own memory; identifiers that no CPU has, and that of all; the I/O APIC; the ends of memory below and above 4 GiB.
const ADDRESSES: [u64; 7] =
    [SINK, MESSAGE_ADDRESS | 0x7f << 12, MESSAGE_ADDRESS | 0xff << 12, 0xfec0_0000, 0, 0xffff_fffc, !3];
/// Delivery modes unless `modes=` lists others: fixed, lowest priority, NMI. The others, SMI (2), INIT (5) and external
/// (7), may end a bare machine.
const MODES: [u64; 3] = [0, 1, 4];
const NON_MASKABLE: u8 = 2;
const ILLEGAL_VECTORS: core::ops::Range<u32> = 0..16;
const AFTERWARDS_MS: u32 = 30;
const LIMIT_MS: u32 = 1000;

/// Has the device send messages to [`ADDRESSES`] or those of `message=`, then with data of [`MODES`], then of illegal
/// vectors; reports what came. Afterwards a message that is right comes once.
pub fn anywhere(request: &Request<'_>) -> Result<(), Wrong> {
    expect_that("free memory up to", NEEDED, free_memory().end, free_memory().end >= NEEDED)?;
    let function = request.edu.function;
    use_messages(function)?;
    let is_given = options::value(request.command_line, "message").is_some();
    let given = options::addresses(request.command_line, "message");
    given.chain(ADDRESSES.into_iter().filter(|_| !is_given)).try_for_each(|address| to_address(function, address))?;
    let is_given = options::value(request.command_line, "modes").is_some();
    let given = options::addresses(request.command_line, "modes");
    given.chain(MODES.into_iter().filter(|_| !is_given)).try_for_each(|mode| in_mode(function, mode as u32))?;
    illegal(function)?;
    use_messages(function)?;
    let before = came();
    device::write(Register::RaiseInterrupt, 1);
    clock::wait(Waiting::Halted, LIMIT_MS, || came() != before);
    pause(AFTERWARDS_MS);
    expect("interrupts of a right message", 0, (came() - before).into(), 1)
}

/// Raises an interrupt, and takes its cause away: no handler may.
fn raise() {
    device::write(Register::RaiseInterrupt, 1);
    pause(AFTERWARDS_MS);
    device::write(Register::AcknowledgeInterrupt, 1);
}

fn to_address(function: Function, address: u64) -> Result<(), Wrong> {
    set_message(function, address, MESSAGE_VECTOR.into())?;
    let before = came();
    write(SINK, 0);
    raise();
    print!("edu: msi-anywhere {address:#x} interrupts={} memory={:#x}\n", came() - before, read(SINK));
    Ok(())
}

fn in_mode(function: Function, mode: u32) -> Result<(), Wrong> {
    set_message(function, own_address(), mode << 8 | u32::from(MESSAGE_VECTOR))?;
    let (before, nmis) = (came(), interrupts::count(NON_MASKABLE));
    raise();
    let nmis = interrupts::count(NON_MASKABLE) - nmis;
    print!("edu: msi-anywhere mode={mode} interrupts={} nmis={nmis}\n", came() - before);
    Ok(())
}

/// Vectors of exceptions, which no local APIC may deliver (Intel SDM vol. 3, section 11.5.2).
fn illegal(function: Function) -> Result<(), Wrong> {
    let mut exceptions = 0;
    for vector in ILLEGAL_VECTORS {
        set_message(function, own_address(), vector)?;
        exceptions += u32::from(attempt(raise).is_err());
        device::write(Register::AcknowledgeInterrupt, 1);
    }
    print!("edu: msi-anywhere illegal vectors: exceptions={exceptions}\n");
    Ok(())
}

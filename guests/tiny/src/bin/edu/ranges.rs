// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device's range where it does not belong, and moved faster than anyone can follow.

use tiny::answers::{Wrong, expect, expect_that};
use tiny::apic::{self, Register as Local};
use tiny::boot::free_memory;
use tiny::random::Random;
use tiny::{cpu, options, print};

use crate::config::{BAR, BUS_MASTER, MEMORY};
use crate::device::{self, Edu, is_alive};
use crate::request::Request;
use crate::transfer::{read, write};

/// Memory of the guest's own that nothing is in.
const OWN_MEMORY: u64 = 8 << 20;
const RANGE_BYTES: u64 = 1 << 20;
const IOAPIC: u64 = 0xfec0_0000;
/// Own memory, the program's own and the vectors below it, the interrupt controllers, the two ends of 4 GiB.
const PLACES: [u64; 6] = [OWN_MEMORY, 0x10_0000, IOAPIC, apic::PAGE, 0xfff0_0000, 0];
/// The address to which it is moved in storms: free in the PCI hole of QEMU's q35 and of Baton's guests.
const HOLE: u64 = 0xc900_0000;
const PLACES_IN_HOLE: u64 = 16;
/// Rounds of a storm unless stated otherwise.
const ROUNDS: u64 = 10_000;

/// Puts the range over each of [`PLACES`], or the addresses of `to=`: memory and interrupt controllers stay what they
/// are.
pub fn displaced(request: &Request<'_>) -> Result<(), Wrong> {
    let given = options::addresses(request.command_line, "to");
    let is_given = options::value(request.command_line, "to").is_some();
    let own = PLACES.into_iter().filter(|_| !is_given);
    given.chain(own).try_for_each(|place| displace(&request.edu, place))
}

fn displace(edu: &Edu, place: u64) -> Result<(), Wrong> {
    let versions = versions();
    let has_memory = free_memory().start <= OWN_MEMORY && OWN_MEMORY + RANGE_BYTES <= free_memory().end;
    let pages = || (OWN_MEMORY..OWN_MEMORY + RANGE_BYTES).step_by(4096).filter(|_| has_memory);
    pages().for_each(|at| write(at, at ^ place));
    move_to(edu, place);
    let different = pages().find(|&at| read(at) != at ^ place);
    let own = self::versions();
    let found = edu.function.read(BAR);
    return_home(edu);
    print!("edu: bars {place:#x}: register={found:#x} memory={}\n", if different.is_some() { "other" } else { "own" });
    expect_that("own memory under a range at", place, different.unwrap_or(0), different.is_none())?;
    expect("versions of APIC and I/O APIC under a range at", place, own, versions)?;
    is_alive()
}

/// The version registers of local APIC and I/O APIC.
fn versions() -> u64 {
    const VERSION: u32 = 1;
    cpu::write_memory(IOAPIC, VERSION);
    u64::from(apic::read(Local::Version)) << 32 | u64::from(cpu::read_memory(IOAPIC + 0x10))
}

fn move_to(edu: &Edu, place: u64) {
    device::set_place(0);
    edu.function.write(BAR, place as u32);
}

fn return_home(edu: &Edu) {
    edu.function.change_command(MEMORY, 0);
    edu.function.write(BAR, edu.address);
    edu.function.change_command(0, MEMORY | BUS_MASTER);
    device::set_place(edu.address.into());
}

/// Moves the range, and switches decoding and bus mastering, 10,000 times or `rounds=`. Where it decodes it answers.
pub fn storm(request: &Request<'_>) -> Result<(), Wrong> {
    let (edu, mut random) = (&request.edu, Random::new(request.seed));
    let (mut answers, mut result) = (0_u32, Ok(()));
    for _ in 0..request.rounds.unwrap_or(ROUNDS) {
        let drawn = random.draw();
        let place = HOLE + drawn % PLACES_IN_HOLE * RANGE_BYTES;
        move_to(edu, place);
        let command = (drawn >> 32) as u32 & (MEMORY | BUS_MASTER);
        edu.function.change_command(MEMORY | BUS_MASTER, command);
        if command & MEMORY != 0 {
            answers += 1;
            let found = u64::from(cpu::read_memory(place));
            result = result.and(expect_that("identification at", place, found, found & 0xff == 0xed));
        }
    }
    return_home(edu);
    print!("edu: storm: answers={answers}\n");
    result.and_then(|()| is_alive())
}

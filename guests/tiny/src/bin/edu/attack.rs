// SPDX-License-Identifier: MIT OR Apache-2.0
//! DMA to addresses that are not the guest's, and messages that it has no right to send.
//!
//! `at=` lists the addresses. Without an IOMMU all of it reaches its target.

use core::fmt;
use core::ops::Range;

use tiny::answers::{Wrong, expect_that};
use tiny::boot::free_memory;
use tiny::random::Random;
use tiny::{interrupts, options, print};

use crate::clock::pause;
use crate::interrupts::{MESSAGE_ADDRESS, own_address};
use crate::request::Request;
use crate::transfer::{Direction, NEEDED, SINK, SOURCE, quiet, read, write};

/// Bytes of an attack.
const BYTES: u64 = 64;
/// Writes to these addresses are interrupts.
const MESSAGES: Range<u64> = MESSAGE_ADDRESS..MESSAGE_ADDRESS + 0x10_0000;
/// The vector of messages that the device was never given.
const FORGED_VECTOR: u8 = 0x58;
const AFTERWARDS_MS: u32 = 50;

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// The device's buffer is as it was.
    Nothing,
    /// Zeros.
    Zeros,
    /// Ones.
    Ones,
    /// Something else, which begins with this.
    Data(u64),
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing"),
            Self::Zeros => f.write_str("zeros"),
            Self::Ones => f.write_str("ones"),
            Self::Data(word) => write!(f, "{word:#018x}"),
        }
    }
}

/// Reads and writes each address of `at=`, and reports it. With `expect=refused` it is wrong if data came or a write
/// was there afterwards, with `expect=reached` if not; `write=no` reads only.
pub fn attack(request: &Request<'_>) -> Result<(), Wrong> {
    expect_that("free memory up to", NEEDED, free_memory().end, free_memory().end >= NEEDED)?;
    let writes = options::value(request.command_line, "write") != Some("no");
    let expected = match options::value(request.command_line, "expect") {
        Some("refused") => Some(false),
        Some("reached") => Some(true),
        _ => None,
    };
    let mut result = Ok(());
    for address in options::addresses(request.command_line, "at") {
        let reached = if MESSAGES.contains(&address) { forge(address)? } else { access(address, writes)? };
        let is_right = expected.is_none_or(|expected| expected == reached);
        result = result.and(expect_that("attack on", address, reached.into(), is_right));
    }
    result
}

/// Reads an address, writes it, and reads it again; true if anything was reached.
fn access(address: u64, writes: bool) -> Result<bool, Wrong> {
    let seen = spy(address)?;
    if !writes {
        print!("edu: attack {address:#x} read={seen}\n");
        return Ok(matches!(seen, Seen::Data(_)));
    }
    let pattern = load(2)?;
    quiet(Direction::ToMemory, address, BYTES)?;
    let is_there = spy(address)? == Seen::Data(pattern);
    print!("edu: attack {address:#x} read={seen} write={}\n", if is_there { "reached" } else { "lost" });
    Ok(is_there || matches!(seen, Seen::Data(_)))
}

/// Has the device read an address, and fetches what it has read.
fn spy(address: u64) -> Result<Seen, Wrong> {
    let before = load(1)?;
    quiet(Direction::ToDevice, address, BYTES)?;
    words(SINK).for_each(|at| write(at, 0));
    quiet(Direction::ToMemory, SINK, BYTES)?;
    let are_all = |value| words(SINK).all(|at| read(at) == value);
    Ok(match read(SINK) {
        word if word == before => Seen::Nothing,
        0 if are_all(0) => Seen::Zeros,
        u64::MAX if are_all(u64::MAX) => Seen::Ones,
        word => Seen::Data(word),
    })
}

/// Fills the device's buffer with a pattern; returns its first word.
fn load(seed: u64) -> Result<u64, Wrong> {
    let mut random = Random::new(seed);
    words(SOURCE).for_each(|at| write(at, random.draw()));
    quiet(Direction::ToDevice, SOURCE, BYTES)?;
    Ok(read(SOURCE))
}

fn words(address: u64) -> impl Iterator<Item = u64> {
    (address..address + BYTES).step_by(8)
}

/// Writes a message by DMA, for this CPU if the address names none; true if it came.
fn forge(address: u64) -> Result<bool, Wrong> {
    const DWORD: u64 = 4;
    let address = if address == MESSAGE_ADDRESS { own_address() } else { address };
    write(SOURCE, FORGED_VECTOR.into());
    let before = interrupts::count(FORGED_VECTOR);
    quiet(Direction::ToDevice, SOURCE, DWORD)?;
    quiet(Direction::ToMemory, address, DWORD)?;
    pause(AFTERWARDS_MS);
    let came = interrupts::count(FORGED_VECTOR) - before;
    print!("edu: attack {address:#x} interrupts={came}\n");
    Ok(came != 0)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A network card that is programmed to fetch packets' descriptors where the guest has no memory, over and over: `edu`
//! itself takes 100 ms for each transfer. The card is an Intel 82574L (its datasheet, revision 3.4, section 10.2.6).

use tiny::answers::{Wrong, expect, expect_that};
use tiny::{cpu, print};

use crate::config::{BAR, BUS_MASTER, Function, IDENTITY, MEMORY};
use crate::device::is_alive;
use crate::request::Request;

/// Device and vendor identifier.
const CARD: u32 = 0x10d3_8086;
/// The address of its registers: free in the PCI hole of QEMU's q35 and of Baton's guests.
const PLACE: u32 = 0xca00_0000;
const STATUS: u64 = 0x8;
const TRANSMIT_CONTROL: u64 = 0x400;
const TRANSMIT_ENABLE: u32 = 1 << 1;
/// The ring of descriptors: its address, its bytes, where the card is in it, and where it is to go.
const RING_LOW: u64 = 0x3800;
const RING_HIGH: u64 = 0x3804;
const RING_BYTES: u64 = 0x3808;
const HEAD: u64 = 0x3810;
const TAIL: u64 = 0x3818;
/// 256 GiB: no guest has memory there.
const NOWHERE_HIGH: u32 = 0x40;
const DESCRIPTORS: u32 = 64;
const DESCRIPTOR_BYTES: u32 = 16;
/// Reads of a port between two laps: an exit each, some 0.2 ms in all. QEMU holds its lock while the card fetches, and
/// needs it for timers: with no pause the host's alarms come 40 to 200 ms late. A loop that only computes would be
/// taken for a panicked kernel's.
const PAUSES: u32 = 10;
/// A port that no device answers at.
const UNUSED_PORT: u16 = 0x80;
/// Laps of the ring unless stated otherwise.
const LAPS: u64 = 10_000_000;

/// Lets the card fetch until it is gone, or so many laps. With Baton the host takes it away, and `edu` works on.
pub fn flood(request: &Request<'_>) -> Result<(), Wrong> {
    let bus = request.edu.function.bus;
    let card = Function::find(bus, CARD).ok_or(Wrong::new("network card on bus", bus.into(), 0))?;
    start(card);
    let (mut tail, mut laps) = (0, 0);
    while laps < request.rounds.unwrap_or(LAPS) && read(STATUS) != u32::MAX {
        tail = (tail + DESCRIPTORS - 1) % DESCRIPTORS;
        write(TAIL, tail);
        (0..PAUSES).for_each(|_| _ = cpu::inb(UNUSED_PORT));
        laps += 1;
    }
    let is_gone = card.read(IDENTITY) == u32::MAX;
    let head = read(HEAD);
    print!("edu: flood: laps={laps} card={}\n", if is_gone { "gone" } else { "there" });
    expect_that("laps of the flood", laps, 0, laps > 0)?;
    if !is_gone {
        return expect("descriptor that the card is at", 0, head.into(), tail.into());
    }
    card.change_command(0, MEMORY | BUS_MASTER);
    expect("identity of a card that is gone", 0, card.read(IDENTITY).into(), u32::MAX.into())?;
    is_alive()
}

fn start(card: Function) {
    card.change_command(MEMORY | BUS_MASTER, 0);
    card.write(BAR, PLACE);
    card.change_command(0, MEMORY | BUS_MASTER);
    write(RING_LOW, 0);
    write(RING_HIGH, NOWHERE_HIGH);
    write(RING_BYTES, DESCRIPTORS * DESCRIPTOR_BYTES);
    write(HEAD, 0);
    write(TAIL, 0);
    write(TRANSMIT_CONTROL, TRANSMIT_ENABLE);
}

fn read(register: u64) -> u32 {
    cpu::read_memory(u64::from(PLACE) + register)
}

fn write(register: u64, value: u32) {
    cpu::write_memory(u64::from(PLACE) + register, value);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probing for a UART, and setting it up.
//!
//! Presence: a bus that no device drives reads as ones, or as what was written last. So a pattern goes to the scratch
//! register and something else to another register in between; an 8250, which has no scratch register, is known by its
//! modem lines in loopback. The FIFO: the depth that the identification register claims is counted in loopback, where
//! nothing is sent on the line: as many bytes as it should hold are written at once, and must come back in their order.

use core::fmt;

use crate::hardware::Hardware;
use crate::rate::Rate;
use crate::register::{FLOATING, FifoControl, Identification, LineControl, LineStatus, ModemControl, Register};
use crate::wait::Wait;

/// The largest FIFO there is (TL16C750).
const MAX_DEPTH: usize = 64;
/// The byte that goes first when the FIFO is counted.
const FIRST: u8 = b'!';
/// Longest wait for the wire, in times that the wire needs.
const WIRE_TIMES: u64 = 4;

/// Number of bytes that a transmitter takes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FifoDepth {
    /// A holding register: 8250, 16450, and the 16550 with a FIFO that loses bytes.
    None,
    /// A FIFO of so many bytes.
    Bytes(u8),
}

impl FifoDepth {
    /// Returns how many bytes may be written to an empty transmitter.
    pub const fn bytes(self) -> usize {
        match self {
            Self::None => 1,
            Self::Bytes(bytes) => bytes as usize,
        }
    }
}

impl fmt::Display for FifoDepth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("no FIFO"),
            Self::Bytes(bytes) => write!(f, "FIFO of {bytes}"),
        }
    }
}

/// A UART that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Number of bytes that its transmitter takes at once, as counted.
    pub depth: FifoDepth,
    /// True if bytes leave it in the wire's time, as far as is known. An emulator's leave at once.
    pub is_paced: bool,
    /// Its line's speed.
    pub rate: Rate,
}

/// No UART answers at these ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absent;

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no UART answers at its ports")
    }
}

impl core::error::Error for Absent {}

/// The other end of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// One that only reads: the FIFO is counted, and bytes that arrive meanwhile are lost.
    Reads,
    /// One that may be talking already, and would be heard even in loopback where a UART is an emulator's: the FIFO is
    /// believed, and nothing is lost from the moment on it is enabled.
    Talks,
}

/// Probes for a UART and sets it to `rate`, 8N1, FIFOs on and empty, no interrupts.
pub(crate) fn probe(hardware: &mut impl Hardware, rate: Rate, peer: Peer) -> Result<Found, Absent> {
    if hardware.read(Register::LineStatus) == FLOATING && hardware.read(Register::Interrupts) == FLOATING {
        return Err(Absent);
    }
    hardware.write(Register::LineControl, LineControl::EIGHT_BITS.bits());
    // Bytes that were sent before, by firmware or by the previous software, may leave.
    let sent_ns = rate.byte_ns() * MAX_DEPTH as u64;
    Wait::until(hardware, sent_ns, |hardware| status(hardware).contains(LineStatus::LINE_IDLE));
    if !has_scratch(hardware) && !mirrors_modem_lines(hardware) {
        return Err(Absent);
    }
    let claimed = set_up(hardware, rate);
    let (depth, is_paced) = match peer {
        Peer::Reads => count(hardware, claimed, rate),
        Peer::Talks => (claimed, false),
    };
    if depth == FifoDepth::None {
        hardware.write(Register::Fifo, 0);
    } else if peer == Peer::Reads {
        let switches = FifoControl::ENABLE | FifoControl::CLEAR_RECEIVER | FifoControl::TRIGGER_14;
        hardware.write(Register::Fifo, switches.bits());
    }
    let lines = ModemControl::READY | ModemControl::REQUEST | ModemControl::INTERRUPT_GATE;
    hardware.write(Register::ModemControl, lines.bits());
    Ok(Found { depth, is_paced, rate })
}

/// Writes something else in between, so that a bus that remembers is not taken for a register. Leaves all interrupts
/// disabled and the modem lines in loopback.
fn has_scratch(hardware: &mut impl Hardware) -> bool {
    let mut keeps = |pattern, register, value| {
        hardware.write(Register::Scratch, pattern);
        hardware.write(register, value);
        hardware.read(Register::Scratch) == pattern
    };
    let first = keeps(0x5a, Register::Interrupts, 0);
    let second = keeps(0xa5, Register::ModemControl, ModemControl::LOOPBACK.bits());
    first && second
}

/// In loopback the four outputs are the four inputs (section 8.8): READY shows as bit 5 of the status, REQUEST as
/// bit 4.
fn mirrors_modem_lines(hardware: &mut impl Hardware) -> bool {
    let mut shows = |lines: ModemControl, expected| {
        hardware.write(Register::ModemControl, (ModemControl::LOOPBACK | lines).bits());
        hardware.read(Register::ModemStatus) & 0xf0 == expected
    };
    shows(ModemControl::READY, 0x20) && shows(ModemControl::REQUEST, 0x10)
}

/// Sets rate and FIFOs; returns the depth that the UART claims.
fn set_up(hardware: &mut impl Hardware, rate: Rate) -> FifoDepth {
    let [low, high] = rate.divisor().to_le_bytes();
    hardware.write(Register::LineControl, (LineControl::EIGHT_BITS | LineControl::DIVISOR).bits());
    hardware.write(Register::Data, low);
    hardware.write(Register::Interrupts, high);
    let clear = FifoControl::CLEAR_RECEIVER | FifoControl::CLEAR_TRANSMITTER;
    let switches = FifoControl::ENABLE | clear | FifoControl::DEPTH_64 | FifoControl::TRIGGER_14;
    hardware.write(Register::Fifo, switches.bits());
    hardware.write(Register::LineControl, LineControl::EIGHT_BITS.bits());
    let claims = Identification::from_bits_retain(hardware.read(Register::Fifo));
    if !claims.contains(Identification::FIFO | Identification::FIFO_WORKS) {
        FifoDepth::None
    } else if claims.contains(Identification::FIFO_64) {
        FifoDepth::Bytes(64)
    } else {
        FifoDepth::Bytes(16)
    }
}

/// Counts the FIFO: sends as many bytes as it should hold in loopback; it holds as many as come back. One byte goes
/// first, to keep the shift register busy, which would take another. Where writing takes longer than a byte does on the
/// wire, those that left meanwhile made room for as many, and do not count. A UART that loops nothing back is believed.
/// Also reports whether bytes take the wire's time.
fn count(hardware: &mut impl Hardware, claimed: FifoDepth, rate: Rate) -> (FifoDepth, bool) {
    let mut bytes = [0; MAX_DEPTH];
    let bytes = &mut bytes[..claimed.bytes()];
    bytes.iter_mut().enumerate().for_each(|(index, byte)| *byte = index as u8 + b'0');
    let has_arrived = |hardware: &mut _| status(hardware).contains(LineStatus::DATA_READY);
    let wire_ns = rate.byte_ns() * (bytes.len() as u64 + 1) * WIRE_TIMES;
    hardware.write(Register::ModemControl, ModemControl::LOOPBACK.bits());
    hardware.write(Register::Data, FIRST);
    let is_paced = !has_arrived(hardware);
    if !is_paced {
        hardware.read(Register::Data);
    }
    hardware.write_burst(Register::Data, bytes);
    let (mut returned, mut freed) = (0, 0);
    if is_paced && has_arrived(hardware) {
        hardware.read(Register::Data);
        returned = count_returned(hardware, bytes);
        freed = returned + 1;
    } else if is_paced {
        if !Wait::until(hardware, wire_ns, has_arrived) {
            return (claimed, is_paced);
        }
        hardware.read(Register::Data);
    }
    Wait::until(hardware, wire_ns, |hardware| status(hardware).contains(LineStatus::LINE_IDLE));
    returned += count_returned(hardware, &bytes[returned..]);
    match returned.saturating_sub(freed) {
        depth @ 2.. if claimed != FifoDepth::None => (FifoDepth::Bytes(depth as u8), is_paced),
        _ => (FifoDepth::None, is_paced),
    }
}

/// Returns how many of `bytes` have arrived, in their order. An emulator's UART may mix in bytes from outside.
fn count_returned(hardware: &mut impl Hardware, bytes: &[u8]) -> usize {
    let mut returned = 0;
    for _ in 0..2 * MAX_DEPTH {
        if returned == bytes.len() || !status(hardware).contains(LineStatus::DATA_READY) {
            break;
        }
        returned += usize::from(hardware.read(Register::Data) == bytes[returned]);
    }
    returned
}

fn status(hardware: &mut impl Hardware) -> LineStatus {
    LineStatus::from_bits_retain(hardware.read(Register::LineStatus))
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! QEMU's trace of a UART: every access, and thereby every byte that was sent.

use std::io::BufRead;

use anyhow::{Context as _, Result};

/// Accesses and bytes of a part of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Part {
    pub accesses: u64,
    pub bytes: u64,
}

impl Part {
    pub fn per_byte(&self) -> f64 {
        self.accesses as f64 / self.bytes as f64
    }
}

/// A run: before the first byte, early, later.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Accesses {
    /// Accesses before the first byte: detection and set-up of the UART.
    pub set_up: u64,
    pub early: Part,
    pub later: Part,
}

impl Accesses {
    /// Returns the accesses for each byte of the whole run, detection included.
    pub fn per_byte(&self) -> f64 {
        (self.set_up + self.early.accesses + self.later.accesses) as f64 / self.bytes()
    }

    /// Returns the number of bytes sent.
    pub fn bytes(&self) -> f64 {
        (self.early.bytes + self.later.bytes) as f64
    }
}

/// Offsets and bits of a 16550 (PC16550D data sheet, table II).
const DATA: u8 = 0;
const LINE_CONTROL: u8 = 3;
const MODEM_CONTROL: u8 = 4;
const DIVISOR_LATCH: u8 = 1 << 7;
const LOOPBACK: u8 = 1 << 4;

/// Reads a trace of `serial_read` and `serial_write`. The line that contains `last_early` is the last that is early.
pub(super) fn read(trace: impl BufRead, last_early: &str) -> Result<Accesses> {
    let mut found = Accesses::default();
    let (mut is_latched, mut is_looped, mut is_later) = (false, false, false);
    let mut line = Vec::new();
    for event in trace.lines() {
        let Some(event) = parse(&event.context("the emulator's trace cannot be read")?) else { continue };
        let part = if is_later { &mut found.later } else { &mut found.early };
        part.accesses += 1;
        match event {
            Event { is_write: true, register: LINE_CONTROL, value } => is_latched = value & DIVISOR_LATCH != 0,
            Event { is_write: true, register: MODEM_CONTROL, value } => is_looped = value & LOOPBACK != 0,
            Event { is_write: true, register: DATA, value } if !is_latched && !is_looped => {
                if part.bytes == 0 && !is_later {
                    // The first byte and the status read before it are no part of the set-up.
                    found.set_up = part.accesses.saturating_sub(2);
                    part.accesses -= found.set_up;
                }
                part.bytes += 1;
                line.push(value);
                if value == b'\n' {
                    is_later |= String::from_utf8_lossy(&line).contains(last_early);
                    line.clear();
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

struct Event {
    is_write: bool,
    register: u8,
    value: u8,
}

/// `serial_write write addr 0x00 val 0x41`, whatever stands before it.
fn parse(line: &str) -> Option<Event> {
    let is_write = line.contains("serial_write ");
    if !is_write && !line.contains("serial_read ") {
        return None;
    }
    let number = |name: &str| {
        let digits = line.split_once(name)?.1.split_whitespace().next()?;
        u8::from_str_radix(digits.trim_start_matches("0x"), 16).ok()
    };
    Some(Event { is_write, register: number("addr ")?, value: number("val ")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(events: &[(&str, u8, u8)]) -> String {
        events
            .iter()
            .map(|(kind, addr, value)| format!("serial_{kind} {kind} addr 0x{addr:02x} val 0x{value:02x}\n"))
            .collect()
    }

    #[test]
    fn bytes_are_distinguished_from_divisor_and_loopback_and_parts_by_their_line() {
        let mut events =
            vec![("write", 3, 0x83), ("write", 0, 1), ("write", 3, 3), ("write", 4, 0x10), ("write", 0, b'x')];
        events.extend([("write", 4, 0xb), ("read", 5, 0x60), ("write", 0, b'A'), ("write", 0, b'\n')]);
        events.extend([("read", 5, 0x60), ("write", 0, b'B')]);
        let found = read(format!("noise\n{}", trace(&events)).as_bytes(), "A").unwrap();
        assert_eq!((found.set_up, found.early), (6, Part { accesses: 3, bytes: 2 }));
        assert_eq!(found.later, Part { accesses: 2, bytes: 1 });
        assert_eq!(found.per_byte(), 11.0 / 3.0);
    }
}

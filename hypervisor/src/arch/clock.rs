// SPDX-License-Identifier: MIT OR Apache-2.0
//! The wall clock: read from the CMOS clock once, at boot; the time stamp counter carries it on.

use core::sync::atomic::{AtomicU64, Ordering};

use vm::devices::cmos::calendar::{RegisterFormat, TIME_REGISTERS, decode};

use super::{port, timer};

/// Registers in the order that [`decode`] wants: second, minute, hour, weekday, day, month, year, century.
const REGISTERS: [u8; TIME_REGISTERS] = [0x00, 0x02, 0x04, 0x06, 0x07, 0x08, 0x09, 0x32];
const REGISTER_A: u8 = 0x0a;
const REGISTER_B: u8 = 0x0b;
const UPDATE_IN_PROGRESS: u8 = 1 << 7;
/// An update takes at most 2 ms; a clock that updates for longer than this many reads is read as it is.
const PATIENCE: u32 = 10_000;

static UNIX_SECONDS_AT_BOOT: AtomicU64 = AtomicU64::new(0);

/// Reads the CMOS clock. Call once the time stamp counter's rate is known.
pub fn start() {
    let mut last = read_all();
    for _ in 0..8 {
        let now = read_all();
        if now == last {
            break;
        }
        last = now;
    }
    let control = read(REGISTER_B);
    let format = RegisterFormat { is_binary: control & 1 << 2 != 0, is_24_hours: control & 1 << 1 != 0 };
    let now = decode(&last, format).max(0) as u64;
    UNIX_SECONDS_AT_BOOT.store(now.saturating_sub(timer::uptime_ns() / 1_000_000_000), Ordering::Relaxed);
}

fn read_all() -> [u8; TIME_REGISTERS] {
    for _ in 0..PATIENCE {
        if read(REGISTER_A) & UPDATE_IN_PROGRESS == 0 {
            break;
        }
    }
    REGISTERS.map(read)
}

fn read(register: u8) -> u8 {
    // SAFETY: the CMOS clock's ports on every PC; no other code uses the index port.
    unsafe {
        port::write_u8(0x70, register);
        port::read_u8(0x71)
    }
}

/// Returns what [`start`] found: seconds since 1970 at the start of time.
pub fn unix_seconds_at_boot() -> u64 {
    UNIX_SECONDS_AT_BOOT.load(Ordering::Relaxed)
}

/// Goes on with the wall clock of the image before.
pub fn resume(unix_seconds_at_boot: u64) {
    UNIX_SECONDS_AT_BOOT.store(unix_seconds_at_boot, Ordering::Relaxed);
}

/// Nanoseconds since 1970.
pub fn unix_ns() -> u64 {
    UNIX_SECONDS_AT_BOOT.load(Ordering::Relaxed) * 1_000_000_000 + timer::uptime_ns()
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ports of the host's UARTs: COM1 carries the log, COM2 the control channel. `uart` drives them.

use core::sync::atomic::{AtomicBool, Ordering};

use uart::{Hardware, Register};

use super::{cpu, port, timer};

/// One of the host's UARTs.
pub type Uart = uart::Uart<ComPort>;

/// COM1 has interrupted since this was last read.
static COM1_HAS_INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// COM2 has interrupted since this was last read.
static COM2_HAS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The eight ports of a PC's serial port.
#[derive(Debug)]
pub struct ComPort {
    base: u16,
}

/// COM1, not yet searched for.
pub const fn com1() -> Uart {
    Uart::new(com1_ports())
}

/// COM1's ports, for a second handle on them.
pub const fn com1_ports() -> ComPort {
    ComPort { base: 0x3f8 }
}

/// COM2, not yet searched for.
pub const fn com2() -> Uart {
    Uart::new(com2_ports())
}

/// COM2's ports, for an image that goes on with what another image has set up.
pub const fn com2_ports() -> ComPort {
    ComPort { base: 0x2f8 }
}

/// COM1's interrupt has come: the UART has room.
pub fn note_com1_interrupt() {
    COM1_HAS_INTERRUPTED.store(true, Ordering::Relaxed);
}

/// Returns whether COM1 has interrupted since this was last asked.
pub fn take_com1_interrupt() -> bool {
    COM1_HAS_INTERRUPTED.swap(false, Ordering::Relaxed)
}

/// COM2's interrupt has come.
pub fn note_com2_interrupt() {
    COM2_HAS_INTERRUPTED.store(true, Ordering::Relaxed);
}

/// Returns whether COM2 has interrupted since this was last asked.
pub fn take_com2_interrupt() -> bool {
    COM2_HAS_INTERRUPTED.swap(false, Ordering::Relaxed)
}

impl ComPort {
    const fn of(&self, register: Register) -> u16 {
        self.base + register as u16
    }
}

impl Hardware for ComPort {
    fn read(&mut self, register: Register) -> u8 {
        // SAFETY: the eight ports at a PC's COM base belong to a UART or to no device; the hypervisor alone uses them.
        unsafe { port::read_u8(self.of(register)) }
    }

    fn write(&mut self, register: Register, value: u8) {
        // SAFETY: as in `read`.
        unsafe { port::write_u8(self.of(register), value) }
    }

    fn write_burst(&mut self, register: Register, bytes: &[u8]) {
        // SAFETY: as in `read`.
        unsafe { port::write_bytes(self.of(register), bytes) }
    }

    fn read_burst(&mut self, register: Register, into: &mut [u8]) {
        // SAFETY: as in `read`.
        unsafe { port::read_bytes(self.of(register), into) }
    }

    fn now_ns(&mut self) -> Option<u64> {
        (timer::tsc_hz() != 0).then(timer::uptime_ns)
    }

    fn pause(&mut self) {
        cpu::pause();
    }
}

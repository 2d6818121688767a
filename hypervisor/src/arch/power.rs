// SPDX-License-Identifier: MIT OR Apache-2.0
//! Leaving: power-off through ACPI, reset, and the lab's debug exit. What is logged is printed first.

use core::sync::atomic::{AtomicU32, Ordering};

use super::{cpu, port};
use crate::console;

/// QEMU's isa-debug-exit in the lab's machines.
const DEBUG_EXIT_PORT: u16 = 0xf4;
/// Sleep enable, bit 13 of PM1 control (ACPI 6.5, section 4.8.3.2.1).
const SLEEP_ENABLE: u16 = 1 << 13;

/// PM1a control port and the S5 sleep type: port in the low half, type in the high half; 0 if unknown.
static POWER_OFF: AtomicU32 = AtomicU32::new(0);

/// Notes how this machine is powered off, as its firmware tables say.
pub fn set_power_off(pm1a_control_port: u16, s5_sleep_type: u8) {
    POWER_OFF.store(u32::from(pm1a_control_port) | u32::from(s5_sleep_type) << 16, Ordering::Relaxed);
}

/// Powers the machine off; halts where the firmware did not say how.
pub fn power_off() -> ! {
    console::flush();
    let known = POWER_OFF.load(Ordering::Relaxed);
    if known as u16 != 0 {
        let value = ((known >> 16) as u16 & 7) << 10 | SLEEP_ENABLE;
        // SAFETY: the FADT names this port as PM1a control; nothing runs after this.
        unsafe { port::write_u16(known as u16, value) };
    }
    cpu::halt_forever()
}

/// Resets the machine through the reset control register that PCs have had since the PIIX; halts if that does nothing.
pub fn reset() -> ! {
    console::flush();
    // SAFETY: nothing runs after this.
    unsafe { port::write_u8(0xcf9, 0x0e) };
    cpu::halt_forever()
}

/// Ends a lab machine with a status; halts where there is no such device.
pub fn debug_exit(code: u32) -> ! {
    console::flush();
    // SAFETY: in the lab this port ends QEMU; elsewhere nobody listens there.
    unsafe { port::write_u32(DEBUG_EXIT_PORT, code) };
    cpu::halt_forever()
}

/// Masks both 8259s: interrupts come through the I/O APICs only.
pub fn mask_8259() {
    // SAFETY: the MADT says that the 8259s are there; these are their mask registers.
    unsafe {
        port::write_u8(0x21, 0xff);
        port::write_u8(0xa1, 0xff);
    }
}

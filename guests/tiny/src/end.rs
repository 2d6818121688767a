// SPDX-License-Identifier: MIT OR Apache-2.0
//! End of a tiny guest, by whichever way its machine has.
//!
//! First the debug-exit port, with a code that reports how it went; then power-off through the ACPI sleep control
//! register (ACPI 6.5, section 4.8.3.7); then sleep for good. QEMU's isa-debug-exit turns code N into exit status
//! 2N + 1.

use crate::cpu::{halt_for_good, outb, outl};

/// Outcome of the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything was as it should be: debug-exit code 0x10 (QEMU's status 33).
    Right,
    /// Something was not: debug-exit code 0x11 (QEMU's status 35).
    Wrong,
}

impl Verdict {
    /// Right if it holds.
    pub fn of(is_right: bool) -> Self {
        if is_right { Self::Right } else { Self::Wrong }
    }
}

const DEBUG_EXIT: u16 = 0xf4;
const SLEEP_CONTROL: u16 = 0x600;
/// Sleep type 5 (S5, soft off) and sleep enable.
const POWER_OFF: u8 = 5 << 2 | 1 << 5;

/// Ends the machine.
pub fn end(verdict: Verdict) -> ! {
    let code = match verdict {
        Verdict::Right => 0x10,
        Verdict::Wrong => 0x11,
    };
    outl(DEBUG_EXIT, code);
    outb(SLEEP_CONTROL, POWER_OFF);
    halt_for_good()
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Leaving the machine with the log printed first. [`crate::arch::power`] leaves at once.

use wire::exit_code::ExitCode;

use crate::arch::power;
use crate::kernel::console;

/// Prints the log, then powers the machine off; halts where the firmware did not state how.
pub fn power_off() -> ! {
    console::flush();
    power::power_off()
}

/// Prints the log, then resets the machine.
pub fn reset() -> ! {
    console::flush();
    power::reset()
}

/// Prints the log, then ends a lab machine with a status; halts where there is no such device.
pub fn debug_exit(code: ExitCode) -> ! {
    console::flush();
    power::debug_exit(code.port_value())
}

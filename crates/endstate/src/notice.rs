// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notifying the monitor of this machine, where it is itself a virtual one (QEMU, docs/specs/pvpanic).

/// The device's port on the ISA bus, one byte wide.
pub const PVPANIC_PORT: u16 = 0x505;
/// The event: the machine's kernel has panicked. Bit 0 both of the value read (supported) and of the value written.
const PANICKED: u8 = 1 << 0;
/// The value read from a port that no device answers at.
const ABSENT: u8 = 0xff;

/// Returns the value to write to the port that reads as `supported`; `None` where there is no such device or it does
/// not know the event.
pub fn pvpanic_event(supported: u8) -> Option<u8> {
    (supported != ABSENT && supported & PANICKED != 0).then_some(PANICKED)
}

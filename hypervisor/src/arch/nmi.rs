// SPDX-License-Identifier: MIT OR Apache-2.0
//! The chipset's report of NMIs, at port 0x61; its meaning is decided in [`endstate::stray`].

use endstate::stray::NMI_STATUS_PORT;

use super::port;

/// NMI status and control. For an NMI's handler.
pub fn status() -> u8 {
    // SAFETY: on a PC this port is NMI status and control, or absent; reading it has no effect.
    unsafe { port::read_u8(NMI_STATUS_PORT) }
}

/// Disables a source that [`status`] has reported.
pub fn set_control(value: u8) {
    // SAFETY: [`status`] has read a source there, so the port is the chipset's; nothing else in the host writes it.
    unsafe { port::write_u8(NMI_STATUS_PORT, value) };
}

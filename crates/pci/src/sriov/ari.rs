// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ports that pass requests for all 256 functions of the device behind them (Alternative Routing-ID Interpretation, PCI
//! Express Base 5.0, section 6.13).

use crate::capability::Capability;
use crate::{Bdf, ConfigWrite, Function, Kind};

/// Device Capabilities 2 and Device Control 2, from the capability's register; ARI Forwarding in both.
const CAPABILITIES_2: u16 = 0x24;
const CONTROL_2: u16 = 0x28;
const ARI_FORWARDING: u32 = 1 << 5;
/// The capability's version since which it has these.
const VERSION: u16 = 0xf;

/// Has the port above a function pass them; returns whether it does. Functions on buses behind the function's own are
/// reached without.
pub(super) fn forward(config: &mut dyn ConfigWrite, function: Bdf, all: &[Function]) -> bool {
    let is_above = |other: &&Function| match other.kind {
        Kind::Bridge { secondary, .. } => other.place.segment == function.segment && secondary == function.bus,
        _ => false,
    };
    let Some(port) = all.iter().find(is_above) else { return false };
    let has_all =
        |one: &&Capability| one.id == Capability::EXPRESS && one.flags & VERSION >= 2 && one.has_bytes(CONTROL_2 + 4);
    let Some(express) = port.capabilities.iter().find(has_all) else { return false };
    let register = u16::from(express.register);
    let capabilities = config.read(port.place, register + CAPABILITIES_2);
    if capabilities == u32::MAX || capabilities & ARI_FORWARDING == 0 {
        return false;
    }
    let control = config.read(port.place, register + CONTROL_2);
    config.write16(port.place, register + CONTROL_2, (control | ARI_FORWARDING) as u16);
    config.read(port.place, register + CONTROL_2) & ARI_FORWARDING != 0
}

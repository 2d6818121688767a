// SPDX-License-Identifier: MIT OR Apache-2.0
//! The virtual configuration space of a physical function, built from its description alone.

use ::pci::capability::Capability;

use super::description::Description;
use crate::devices::pci::function::{Function, Unfit};

const REVISION: usize = 0x08;
const CACHE_LINE: usize = 0x0c;
const SUBSYSTEM: usize = 0x2c;
const INTERRUPT_LINE: usize = 0x3c;
/// INTA.
const FIRST_PIN: u8 = 1;

/// Command register, upper byte: INTx is disabled (PCI Local Bus 3.0, section 6.2.2).
pub(super) const COMMAND_HIGH: u8 = 0x05;
pub(super) const INTX_DISABLED: u8 = 1 << 2;
/// Status register, lower byte: the line is asserted (section 6.2.3).
pub(super) const STATUS: u8 = 0x06;
pub(super) const INTERRUPT_STATUS: u8 = 1 << 3;

/// Power Management Capabilities: version 3, no PME, neither D1 nor D2 (PCI Power Management 1.2, section 3.2.3).
const POWER_CAPABILITIES: u16 = 0x0003;
/// Power Management Control/Status: no reset from D3hot to D0. The state in bits 0–1 is the guest's and not passed on.
const NO_SOFT_RESET: u16 = 1 << 3;
/// Offset of Power Management Control/Status in the capability.
pub(super) const POWER_CONTROL: u8 = 4;
pub(super) const POWER_STATE: u8 = 0b11;

/// PCI Express Capabilities: version 2, a root complex integrated endpoint, which has no link (PCI Express Base 5.0,
/// section 7.5.3.2): the guest's bus 0 has no ports.
const EXPRESS_CAPABILITIES: u16 = 9 << 4 | 2;
/// Device Capabilities: payloads of 128 bytes, role-based error reporting, and function level reset where there is one.
const ROLE_BASED_ERRORS: u32 = 1 << 15;
const FUNCTION_LEVEL_RESET: u32 = 1 << 28;
/// Device Control after a reset: relaxed ordering, no snoop, read requests of 512 bytes. All its bits are the guest's
/// and not passed on, but for the reset in bit 15.
const DEVICE_CONTROL_VALUE: u16 = 0x2810;
/// Offset of Device Control's upper byte, with the bit that resets the function.
pub(super) const DEVICE_CONTROL_HIGH: u8 = 9;
pub(super) const INITIATE_RESET: u8 = 1 << 7;
/// Registers of the capability behind identifier and pointer, up to Slot Status 2.
const EXPRESS_BODY_BYTES: usize = 0x3a;

/// Where emulated capabilities are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    /// Power management.
    pub power: Option<u8>,
    /// PCI Express, of a function that the guest can reset.
    pub reset: Option<u8>,
}

/// The function as after power-on, and where its capabilities are; `None` if it cannot have all that is described.
pub(super) fn build(description: &Description) -> Option<(Function, Places)> {
    let mut function = header(description);
    for (index, range) in description.ranges.iter().enumerate() {
        if let Some(range) = range {
            function.add_bar(index, range.bar).ok()?;
        }
    }
    let power = description.has_power.then(|| add_power(&mut function)).transpose().ok()?;
    let express = description.has_express.then(|| add_express(&mut function, description.has_reset));
    let express = express.transpose().ok()?;
    if let Some(vectors) = description.msi {
        function.add_msi(vectors).ok()?;
    }
    if let Some(place) = description.msix {
        function.add_msix(place).ok()?;
    }
    for body in description.virtio.bodies() {
        function.add_capability(Capability::VENDOR, &body, &[]).ok()?;
    }
    Some((function, Places { power, reset: express.filter(|_| description.has_reset) }))
}

fn header(description: &Description) -> Function {
    let identity = description.identity;
    let mut function = Function::new(identity.vendor, identity.device, identity.class >> 8);
    function.place(REVISION, &[identity.class as u8]);
    // A register without an effect in PCI Express that drivers write.
    function.allow_writes(CACHE_LINE, &[0xff]);
    function.place(SUBSYSTEM, &identity.subsystem_vendor.to_le_bytes());
    function.place(SUBSYSTEM + 2, &identity.subsystem.to_le_bytes());
    function.allow_writes(COMMAND_HIGH.into(), &[INTX_DISABLED]);
    if description.line.is_some() {
        function.place(INTERRUPT_LINE, &[0, FIRST_PIN]);
        function.keep(STATUS.into(), &[INTERRUPT_STATUS]);
    }
    function.allow_writes(INTERRUPT_LINE, &[0xff]);
    function
}

fn add_power(function: &mut Function) -> Result<u8, Unfit> {
    let (mut body, mut writable) = ([0; 6], [0; 6]);
    body[..2].copy_from_slice(&POWER_CAPABILITIES.to_le_bytes());
    body[2..4].copy_from_slice(&NO_SOFT_RESET.to_le_bytes());
    writable[2] = POWER_STATE;
    let at = function.add_capability(Capability::POWER_MANAGEMENT, &body, &writable)?;
    Ok(at as u8)
}

fn add_express(function: &mut Function, has_reset: bool) -> Result<u8, Unfit> {
    let (mut body, mut writable) = ([0; EXPRESS_BODY_BYTES], [0; EXPRESS_BODY_BYTES]);
    let capabilities = ROLE_BASED_ERRORS | if has_reset { FUNCTION_LEVEL_RESET } else { 0 };
    body[..2].copy_from_slice(&EXPRESS_CAPABILITIES.to_le_bytes());
    body[2..6].copy_from_slice(&capabilities.to_le_bytes());
    body[6..8].copy_from_slice(&DEVICE_CONTROL_VALUE.to_le_bytes());
    let control = u16::MAX >> u32::from(!has_reset);
    writable[6..8].copy_from_slice(&control.to_le_bytes());
    let at = function.add_capability(Capability::EXPRESS, &body, &writable)?;
    Ok(at as u8)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration space of a virtio function: identifiers and capabilities (sections 4.1.2 and 4.1.4). Guests have
//! them in their state, so that they stay the same from image to image.

use super::device::VirtioDevice;
use super::function::Virtio;
use super::layout::{
    BAR, BAR_BYTES, COMMON, DEVICE, ISR, MSIX_PENDING, MSIX_TABLE, NOTIFY, NOTIFY_MULTIPLIER, Part, QUEUES_MOST,
};
use super::window::{self, Window};
use crate::devices::pci::{Bar, Endpoint, Function, MsixPlace, Slot, Unfit};

const VENDOR: u16 = 0x1af4;
/// Added to the device type.
const FIRST_DEVICE: u16 = 0x1040;
/// That of a device without the legacy interface (4.1.2.1), and any subsystem identifier from 0x40 on.
const REVISION: u8 = 1;
const SUBSYSTEM: u16 = 0x1100;
/// Header registers (PCI Local Bus 3.0, section 6.1).
const REVISION_REGISTER: usize = 0x08;
const SUBSYSTEM_REGISTER: usize = 0x2c;

/// The vendor's capability, and its types.
const CAPABILITY: u8 = 0x09;
const TYPE_COMMON: u8 = 1;
const TYPE_NOTIFY: u8 = 2;
const TYPE_ISR: u8 = 3;
const TYPE_DEVICE: u8 = 4;
/// Bytes of a capability, without those that some types have behind it.
const CAPABILITY_BYTES: usize = 16;
/// Number and link come first; the body follows.
const BODY_BYTES: usize = CAPABILITY_BYTES - 2;

/// A virtio device in a slot of a guest's bus.
///
/// # Errors
/// [`Unfit`] if the device has more queues than there is room for.
pub fn in_slot<D: VirtioDevice>(slot: Slot, device: D) -> Result<Endpoint<Virtio<D>>, Unfit> {
    let queues = device.queue_sizes().len();
    if queues > QUEUES_MOST || device.config_bytes() > DEVICE.bytes {
        return Err(Unfit);
    }
    let mut function = Function::new(VENDOR, FIRST_DEVICE + D::ID, D::CLASS);
    function.place(REVISION_REGISTER, &[REVISION]);
    function.place(SUBSYSTEM_REGISTER, &VENDOR.to_le_bytes());
    function.place(SUBSYSTEM_REGISTER + 2, &SUBSYSTEM.to_le_bytes());
    function.add_bar(BAR.into(), Bar::Memory32 { bytes: BAR_BYTES })?;
    add_capabilities(&mut function, device.config_bytes())?;
    let at = function.add_capability(CAPABILITY, &window::BODY, &window::WRITABLE)?;
    let window = Window::new(at);
    let vectors = queues as u16 + 1;
    function.add_msix(MsixPlace { bar: BAR, pending_bar: BAR, vectors, table: MSIX_TABLE, pending: MSIX_PENDING })?;
    Ok(Endpoint::new(slot, function, Virtio::new(device, window)))
}

fn add_capabilities(function: &mut Function, config_bytes: u32) -> Result<(), Unfit> {
    let mut add = |kind, part: Part, behind: &[u8]| {
        let (mut bytes, used) = ([0; BODY_BYTES + 4], BODY_BYTES + behind.len());
        bytes[..BODY_BYTES].copy_from_slice(&body(kind, used + 2, part));
        bytes[BODY_BYTES..used].copy_from_slice(behind);
        function.add_capability(CAPABILITY, &bytes[..used], &[]).map(drop)
    };
    add(TYPE_COMMON, COMMON, &[])?;
    add(TYPE_NOTIFY, NOTIFY, &NOTIFY_MULTIPLIER.to_le_bytes())?;
    add(TYPE_ISR, ISR, &[])?;
    if config_bytes > 0 {
        add(TYPE_DEVICE, Part { bytes: config_bytes.next_multiple_of(4), ..DEVICE }, &[])?;
    }
    Ok(())
}

/// The capability's length, its type, the range, and where in it.
const fn body(kind: u8, bytes: usize, part: Part) -> [u8; BODY_BYTES] {
    let ([a, b, c, d], [e, f, g, h]) = (part.first.to_le_bytes(), part.bytes.to_le_bytes());
    [bytes as u8, kind, BAR, 0, 0, 0, a, b, c, d, e, f, g, h]
}

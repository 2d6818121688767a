// SPDX-License-Identifier: MIT OR Apache-2.0
//! The capability list of a physical function, read as untrusted input (PCI Local Bus 3.0, section 6.7).

use ::pci::capability::{Capability, MAX_CAPABILITIES};
use arrayvec::ArrayVec;

use super::description::Description;
use super::physical::Physical;
use super::prober::Prober;
use super::problem::{Problem, Reason};
use super::virtio;
use crate::devices::pci::msix::MsixPlace;
use crate::devices::pci::registers::CONFIG_BYTES;

const STATUS: u16 = 0x06;
const HAS_CAPABILITIES: u32 = 1 << 20;
const POINTER: u16 = 0x34;
const HEADER_BYTES: u16 = 0x40;
/// Bytes of capabilities as far as they are read: power management (PCI Power Management 1.2, section 3.2), MSI-X
/// (PCI Local Bus 3.0, section 6.8.2), PCI Express up to the link registers (PCI Express Base 5.0, section 7.5.3).
const POWER_BYTES: u16 = 8;
const MSIX_BYTES: u16 = 12;
const EXPRESS_BYTES: u16 = 0x14;
/// Those of any other kind have at least identifier and pointer.
const LEAST_BYTES: u16 = 4;
/// MSI message control: 64-bit addresses, masks.
const MSI_WIDE: u16 = 1 << 7;
const MSI_MASKS: u16 = 1 << 8;
/// Device Capabilities: the function can be reset by Device Control.
const FUNCTION_LEVEL_RESET: u32 = 1 << 28;

type List = ArrayVec<Capability, MAX_CAPABILITIES>;

/// Reads all capabilities, and notes in `into` those that a guest is shown.
pub(super) fn read<P: Physical>(prober: &mut Prober<'_, P>, into: &mut Description) -> Result<(), Problem> {
    let list = list(prober)?;
    check_places(prober, &list, into)?;
    for capability in &list {
        let register = u16::from(capability.register);
        match capability.id {
            Capability::POWER_MANAGEMENT => into.has_power = true,
            Capability::MSI => into.msi = Some(msi_vectors(prober, capability)?),
            Capability::MSI_X => into.msix = Some(msix_place(prober, capability)?),
            Capability::EXPRESS => {
                into.has_express = true;
                into.has_reset = prober.read(register + 4)? & FUNCTION_LEVEL_RESET != 0;
            }
            Capability::VENDOR if into.is_virtio() => read_virtio(prober, capability, into)?,
            _ => {}
        }
    }
    let msix = list.iter().find(|capability| capability.id == Capability::MSI_X);
    let at = msix.map_or(0, |capability| u16::from(capability.register));
    into.check_msix().map_err(|reason| {
        let offset = if reason == Reason::TableOutside { 4 } else { 8 };
        prober.problem(at + offset, reason)
    })
}

fn read_virtio<P: Physical>(
    prober: &mut Prober<'_, P>,
    capability: &Capability,
    into: &mut Description,
) -> Result<(), Problem> {
    virtio::read(prober, capability, &mut into.virtio)?;
    let is_inside = into.has_registers_inside();
    if is_inside { Ok(()) } else { Err(prober.problem(capability.register.into(), Reason::RegistersOutside)) }
}

/// Follows the list. It ends at a zero.
fn list<P: Physical>(prober: &mut Prober<'_, P>) -> Result<List, Problem> {
    let (mut list, mut met) = (List::new(), 0u64);
    if prober.read(STATUS & !3)? & HAS_CAPABILITIES == 0 {
        return Ok(list);
    }
    let mut next = prober.read(POINTER)? as u8 & !3;
    while next != 0 {
        let register = u16::from(next);
        if register < HEADER_BYTES {
            return Err(prober.problem(register, Reason::StrayCapability));
        }
        if met & 1 << (next / 4) != 0 {
            return Err(prober.problem(register, Reason::CapabilityLoop));
        }
        met |= 1 << (next / 4);
        let [id, following, flags @ ..] = prober.read(register)?.to_le_bytes();
        // There is room: no place is met twice.
        let _ = list.try_push(Capability { id, register: next, flags: u16::from_le_bytes(flags) });
        next = following & !3;
    }
    Ok(list)
}

/// No capability reaches into another or past the end, and those that count are there once, but for a vendor's own.
fn check_places<P: Physical>(prober: &Prober<'_, P>, list: &List, of: &Description) -> Result<(), Problem> {
    for (index, capability) in list.iter().enumerate() {
        let register = u16::from(capability.register);
        let end = register + bytes(capability, of);
        if end > CONFIG_BYTES as u16 {
            return Err(prober.problem(register, Reason::CapabilityCutOff));
        }
        let is_inside = |other: &&Capability| (register + 1..end).contains(&u16::from(other.register));
        if let Some(other) = list.iter().find(is_inside) {
            return Err(prober.problem(other.register.into(), Reason::CapabilityOverlap(register)));
        }
        let is_shown = bytes(capability, of) > LEAST_BYTES && capability.id != Capability::VENDOR;
        if is_shown && list[..index].iter().any(|before| before.id == capability.id) {
            return Err(prober.problem(register, Reason::CapabilityTwice(capability.id)));
        }
    }
    Ok(())
}

fn bytes(capability: &Capability, of: &Description) -> u16 {
    match capability.id {
        Capability::POWER_MANAGEMENT => POWER_BYTES,
        Capability::MSI => {
            let wide = if capability.flags & MSI_WIDE != 0 { 4 } else { 0 };
            let masks = if capability.flags & MSI_MASKS != 0 { 10 } else { 0 };
            10 + wide + masks
        }
        Capability::MSI_X => MSIX_BYTES,
        Capability::EXPRESS => EXPRESS_BYTES,
        Capability::VENDOR if of.is_virtio() => virtio::bytes(capability.flags).unwrap_or(LEAST_BYTES),
        _ => LEAST_BYTES,
    }
}

/// Message control: the vectors that the function asks for, as a power of two.
fn msi_vectors<P: Physical>(prober: &Prober<'_, P>, capability: &Capability) -> Result<u8, Problem> {
    let vectors = (capability.flags >> 1 & 0b111) as u8;
    if vectors > 5 {
        return Err(prober.problem(capability.register.into(), Reason::MsiVectors));
    }
    Ok(vectors)
}

fn msix_place<P: Physical>(prober: &mut Prober<'_, P>, capability: &Capability) -> Result<MsixPlace, Problem> {
    let register = u16::from(capability.register);
    let (table, pending) = (prober.read(register + 4)?, prober.read(register + 8)?);
    Ok(MsixPlace {
        vectors: (capability.flags & 0x7ff) + 1,
        bar: (table & 0b111) as u8,
        table: table & !0b111,
        pending_bar: (pending & 0b111) as u8,
        pending: pending & !0b111,
    })
}

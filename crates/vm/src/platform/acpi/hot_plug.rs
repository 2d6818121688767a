// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hot-plug controller in AML: a method that the Generic Event Device calls (ACPI 6.5, section 5.6.9), which reads
//! the controller's registers and notifies the devices of bus 0 (section 5.6.6), and an object for each of these.
//!
//! ```text
//! line ──► GED_._EVT ──► PCI0.HPEV ──► Notify (PCI0, bus check), (S001, device check), (S001, eject request), …
//!                                                             ejected: S001._EJ0 ──► register
//! ```
//!
//! The devices have no `_STA` (section 6.3.7): a kernel reads from configuration space whether one is there.

use alloc::vec;
use alloc::vec::Vec;

use acpi_tables::Aml;
use acpi_tables::aml::{
    And, Device, Field, FieldAccessType, FieldEntry, FieldLockRule, FieldUpdateRule, If, Local, Method, Name, Notify,
    OpRegion, OpRegionSpace, Path, Store,
};

use super::made::Made;
use crate::devices::hot_plug::DEVICES;
use crate::platform::layout::port;

/// Values of a notification (section 5.6.6, table 5.150).
const BUS_CHECK: u8 = 0;
const DEVICE_CHECK: u8 = 1;
const EJECT_REQUEST: u8 = 3;
/// The controller's registers, as fields of its region.
const REGION: &str = "HPRG";
const CHECKS: &str = "HPCK";
const REQUESTS: &str = "HPRQ";
const EJECT: &str = "HPEJ";
const REGISTER_BITS: usize = 32;
/// The method that handles events.
pub(super) const EVENTS: &str = "HPEV";

/// The objects that the PCI root has of it.
pub(super) fn of_root() -> Made {
    let mut aml = Vec::new();
    add_registers(&mut aml);
    DEVICES.for_each(|device| add_device(device, &mut aml));
    add_events(&mut aml);
    Made(aml)
}

fn add_registers(aml: &mut Vec<u8>) {
    let (first, ports) = (port::HOT_PLUG, port::HOT_PLUG_PORTS);
    OpRegion::new(REGION.into(), OpRegionSpace::SystemIO, &first, &ports).to_aml_bytes(aml);
    let fields = [CHECKS, REQUESTS, EJECT].map(|name| {
        let mut bytes = [b'_'; 4];
        bytes.copy_from_slice(name.as_bytes());
        FieldEntry::Named(bytes, REGISTER_BITS)
    });
    let (access, lock, update) = (FieldAccessType::DWord, FieldLockRule::NoLock, FieldUpdateRule::WriteAsZeroes);
    Field::new(REGION.into(), access, lock, update, fields.to_vec()).to_aml_bytes(aml);
}

fn name_of(device: u8) -> Path {
    Path::new(&alloc::format!("S{device:03}"))
}

/// A device of bus 0, that is there or may come: its function 0.
fn add_device(device: u8, aml: &mut Vec<u8>) {
    let address = Name::new("_ADR".into(), &(u32::from(device) << 16));
    let slot = Name::new("_SUN".into(), &device);
    let (register, bit) = (Path::new(EJECT), 1_u32 << device);
    let write = Store::new(&register, &bit);
    let eject = Method::new("_EJ0".into(), 1, false, vec![&write]);
    Device::new(name_of(device), vec![&address, &slot, &eject]).to_aml_bytes(aml);
}

/// The method that handles events: it acknowledges the events that it has read before it notifies any device, so that
/// one that comes meanwhile is another event.
fn add_events(aml: &mut Vec<u8>) {
    let mut body = Vec::new();
    for (name, value) in [(CHECKS, DEVICE_CHECK), (REQUESTS, EJECT_REQUEST)] {
        let register = Path::new(name);
        Store::new(&Local(0), &register).to_aml_bytes(&mut body);
        Store::new(&register, &Local(0)).to_aml_bytes(&mut body);
        DEVICES.for_each(|device| add_notification(1 << device, &name_of(device), value, &mut body));
        if name == CHECKS {
            add_notification(1, &Path::new("\\_SB_.PCI0"), BUS_CHECK, &mut body);
        }
    }
    Method::new(EVENTS.into(), 0, true, vec![&Made(body)]).to_aml_bytes(aml);
}

fn add_notification(bit: u32, object: &Path, value: u8, aml: &mut Vec<u8>) {
    // The third operand of And is where the result goes: nowhere.
    let is_set = And::new(&acpi_tables::aml::ZERO, &Local(0), &bit);
    If::new(&is_set, vec![&Notify::new(object, &value)]).to_aml_bytes(aml);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The power button in AML: a control method power button (ACPI 6.5, section 4.8.2.2.1.2), and the method that notifies
//! it when the Generic Event Device has an interrupt from it.

use alloc::vec;
use alloc::vec::Vec;

use acpi_tables::Aml;
use acpi_tables::aml::{
    And, Device, EISAName, Field, FieldAccessType, FieldEntry, FieldLockRule, FieldUpdateRule, If, Local, Method, Name,
    Notify, OpRegion, OpRegionSpace, Path, Store, ZERO,
};

use super::made::Made;
use crate::platform::layout::port;

/// The button was pressed while the system is awake (section 5.6.6).
const PRESSED: u8 = 0x80;
/// The button's register, as a field of its region.
const REGION: &str = "PBRG";
const STATUS: &str = "PBST";
const REGISTER_BITS: usize = 8;
const REGISTER_BYTES: u8 = 1;
const BUTTON: &str = "PWRB";
/// The method that handles events.
pub(super) const EVENTS: &str = "PBEV";

/// The button, its register, and the method.
pub(super) fn button() -> Made {
    let mut aml = Vec::new();
    let id = Name::new("_HID".into(), &EISAName::new("PNP0C0C"));
    let unique = Name::new("_UID".into(), &0_u8);
    Device::new(BUTTON.into(), vec![&id, &unique]).to_aml_bytes(&mut aml);
    OpRegion::new(REGION.into(), OpRegionSpace::SystemIO, &port::POWER_BUTTON, &REGISTER_BYTES).to_aml_bytes(&mut aml);
    let fields = vec![FieldEntry::Named(*b"PBST", REGISTER_BITS)];
    let (access, lock, update) = (FieldAccessType::Byte, FieldLockRule::NoLock, FieldUpdateRule::WriteAsZeroes);
    Field::new(REGION.into(), access, lock, update, fields).to_aml_bytes(&mut aml);
    add_events(&mut aml);
    Made(aml)
}

/// The method acknowledges the events that it has read before it notifies any device, so that one that comes meanwhile
/// is another event.
fn add_events(aml: &mut Vec<u8>) {
    let register = Path::new(STATUS);
    let (read, acknowledge) = (Store::new(&Local(0), &register), Store::new(&register, &Local(0)));
    // The third operand of And is where the result goes: nowhere.
    let is_pressed = And::new(&ZERO, &Local(0), &1_u8);
    let button = Path::new(BUTTON);
    let notify = Notify::new(&button, &PRESSED);
    let notify = If::new(&is_pressed, vec![&notify]);
    Method::new(EVENTS.into(), 0, true, vec![&read, &acknowledge, &notify]).to_aml_bytes(aml);
}

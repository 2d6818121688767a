// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Generic Event Device in AML (ACPI 6.5, section 5.6.9): a line for the hot-plug controller and one for the power
//! button, each with the method that handles it.

use alloc::vec;
use alloc::vec::Vec;

use acpi_tables::Aml;
use acpi_tables::aml::{Arg, Device, Else, Equal, If, Interrupt, Method, MethodCall, Name, Path, ResourceTemplate};

use super::made::Made;
use super::{hot_plug, power_button};
use crate::platform::layout;

/// The device.
pub(super) fn device() -> Made {
    let id = Name::new("_HID".into(), &"ACPI0013");
    let unique = Name::new("_UID".into(), &0_u8);
    // Consumers'; level-triggered, active high, not shared.
    let [plugged, pressed] = [layout::HOT_PLUG_GSI, layout::POWER_BUTTON_GSI]
        .map(|line| Interrupt::new(true, false, false, false, line.into()));
    let resources = Name::new("_CRS".into(), &ResourceTemplate::new(vec![&plugged, &pressed]));
    let handle_press = MethodCall::new(Path::new(&alloc::format!("\\_SB_.{}", power_button::EVENTS)), vec![]);
    let handle_plug = MethodCall::new(Path::new(&alloc::format!("\\_SB_.PCI0.{}", hot_plug::EVENTS)), vec![]);
    let is_press = Equal::new(&Arg(0), &layout::POWER_BUTTON_GSI);
    let (press, plug) = (If::new(&is_press, vec![&handle_press]), Else::new(vec![&handle_plug]));
    let event = Method::new("_EVT".into(), 1, true, vec![&press, &plug]);
    let mut aml = Vec::new();
    Device::new("GED_".into(), vec![&id, &unique, &resources, &event]).to_aml_bytes(&mut aml);
    Made(aml)
}

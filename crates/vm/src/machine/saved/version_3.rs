// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's devices in the words of version 3, which has a place for each device that it knows. A device has the same
//! bytes there as in its block, or a part of [`state::Small`].

use handover::Full;
use handover::state::{self, DeviceKind, PciFunction, small_flag};
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::devices::StateError;
use crate::devices::bus::Bus;
use crate::devices::device::{Device, Tag};

/// The version of the devices' states that version 3 has.
const VERSION: u32 = 1;

/// Returns whether version 3 has a place for every device: its kinds are the first ones.
pub(super) fn has_place_for(bus: &Bus) -> bool {
    bus.devices().all(|device| {
        let device = device.lock();
        device.tag().kind <= DeviceKind::PlainFunction as u32 || device.is_dispensable()
    })
}

/// Saves all devices; returns the bytes of `tail` that are in use.
pub(super) fn save(bus: &Bus, into: &mut state::Devices, tail: &mut [u8]) -> Result<usize, Full> {
    let (mut used, mut functions) = (0, 0);
    for device in bus.devices() {
        let device = &*device.lock();
        let small = &mut into.small;
        match DeviceKind::from_number(device.tag().kind).ok_or(Full)? {
            DeviceKind::Com1 => into.serial = saved(device)?,
            DeviceKind::Cmos => into.cmos = saved(device)?,
            DeviceKind::Ioapic => into.ioapic = saved(device)?,
            DeviceKind::Power => {
                let state::Power { sleep_control, reset_control, .. } = saved(device)?;
                (small.sleep_control, small.reset_control) = (sleep_control, reset_control);
            }
            DeviceKind::Pvpanic => small.panic_event = saved::<state::Pvpanic>(device)?.last_event,
            DeviceKind::DebugExit => {
                let state::DebugExit { code, flags } = saved(device)?;
                (small.debug_exit_code, small.flags) = (code, flags);
            }
            DeviceKind::PciHost => small.pci_address = saved::<state::PciAddress>(device)?.address,
            DeviceKind::PlainFunction => {
                used += device.save(tail.get_mut(used..).ok_or(Full)?)?;
                functions += 1;
            }
            DeviceKind::HotPlug | DeviceKind::PowerButton if device.is_dispensable() => {}
            DeviceKind::AssignedFunction
            | DeviceKind::LineFunction
            | DeviceKind::HotPlug
            | DeviceKind::PowerButton
            | DeviceKind::VirtioRng
            | DeviceKind::VirtioConsole
            | DeviceKind::VirtioNet
            | DeviceKind::SriovFunction
            | DeviceKind::VirtioVsock
            | DeviceKind::VirtioBlk
            | DeviceKind::VirtioBalloon => return Err(Full),
        }
    }
    into.small.pci_functions = U32::new(functions);
    Ok(used)
}

/// Restores all devices.
pub(super) fn restore(bus: &Bus, from: &state::Devices, tail: &[u8]) -> Result<(), StateError> {
    let refused = |reason| StateError { field: "pci.functions", reason };
    let functions = <[PciFunction]>::ref_from_bytes(tail).ok();
    let functions = functions.filter(|functions| functions.len() == from.small.pci_functions.get() as usize);
    let functions = functions.ok_or(refused("their number differs from the header, or they are cut off"))?;
    let plain = |device: &dyn Device| device.tag().kind == DeviceKind::PlainFunction as u32;
    if bus.devices().filter(|device| plain(&*device.lock())).count() != functions.len() {
        return Err(refused("not as many as this machine has"));
    }
    check_debug_exit(bus, &from.small)?;
    for device in bus.devices() {
        restore_device(&mut *device.lock(), from, functions)?;
    }
    Ok(())
}

fn restore_device(device: &mut dyn Device, from: &state::Devices, functions: &[PciFunction]) -> Result<(), StateError> {
    let (tag, small) = (device.tag(), &from.small);
    let mut restore = |bytes: &[u8]| device.restore(VERSION, bytes);
    match DeviceKind::from_number(tag.kind) {
        Some(DeviceKind::Com1) => restore(from.serial.as_bytes()),
        Some(DeviceKind::Cmos) => restore(from.cmos.as_bytes()),
        Some(DeviceKind::Ioapic) => restore(from.ioapic.as_bytes()),
        Some(DeviceKind::Power) => {
            let (sleep_control, reset_control) = (small.sleep_control, small.reset_control);
            restore(state::Power { sleep_control, reset_control, zero: [0; 6] }.as_bytes())
        }
        Some(DeviceKind::Pvpanic) => {
            restore(state::Pvpanic { last_event: small.panic_event, zero: U32::new(0) }.as_bytes())
        }
        Some(DeviceKind::DebugExit) => {
            restore(state::DebugExit { code: small.debug_exit_code, flags: small.flags }.as_bytes())
        }
        Some(DeviceKind::PciHost) => {
            restore(state::PciAddress { address: small.pci_address, zero: U32::new(0) }.as_bytes())
        }
        Some(DeviceKind::PlainFunction) => {
            let found = functions.iter().find(|function| function.slot.get() == tag.instance);
            let missing = StateError { field: "pci.functions", reason: "not one for each slot of this machine" };
            restore(found.ok_or(missing)?.as_bytes())
        }
        Some(DeviceKind::HotPlug | DeviceKind::PowerButton) if device.restore_nothing() => Ok(()),
        Some(
            DeviceKind::AssignedFunction
            | DeviceKind::LineFunction
            | DeviceKind::HotPlug
            | DeviceKind::PowerButton
            | DeviceKind::VirtioRng
            | DeviceKind::VirtioConsole
            | DeviceKind::VirtioNet
            | DeviceKind::SriovFunction
            | DeviceKind::VirtioVsock
            | DeviceKind::VirtioBlk
            | DeviceKind::VirtioBalloon,
        )
        | None => Err(StateError { field: "devices", reason: "version 3 has no place for a device of this machine" }),
    }
}

/// Refuses unknown flags, and a code of the debug-exit port for a machine without that port, which would be lost.
fn check_debug_exit(bus: &Bus, small: &state::Small) -> Result<(), StateError> {
    if small.flags.get() & !small_flag::ALL != 0 {
        return Err(StateError { field: "small.flags", reason: "a flag is unknown" });
    }
    if small.flags.get() != 0 && !bus.has(Tag::only(DeviceKind::DebugExit)) {
        return Err(StateError { field: "debug_exit.last_code", reason: "this machine has no such port" });
    }
    Ok(())
}

fn saved<T: FromBytes + IntoBytes + Immutable>(device: &dyn Device) -> Result<T, Full> {
    let mut piece = T::new_zeroed();
    device.save(piece.as_mut_bytes())?;
    Ok(piece)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's devices in the hand-over's words.

use handover::state::{self, PciFunction, serial_flag, small_flag};
use zerocopy::FromBytes as _;

use super::Full;
use crate::devices::StateError;
use crate::devices::cmos::{Cmos, CmosState};
use crate::devices::debug_exit::{DebugExit, DebugExitCode, DebugExitState};
use crate::devices::ioapic::{Ioapic, IoapicState};
use crate::devices::power::{Power, PowerState};
use crate::devices::pvpanic::{PanicEvent, Pvpanic, PvpanicState};
use crate::devices::serial::{FIFO_BYTES, Serial, SerialState};
use crate::machine::{Devices, Machine};
use crate::memory::GuestMemory;

// What the hand-over has room for is what there is.
const _: () = assert!(FIFO_BYTES == state::FIFO_BYTES && crate::layout::IOAPIC_PINS == state::IOAPIC_PINS);
const _: () = assert!(crate::devices::pci::CONFIG_BYTES == state::CONFIG_BYTES);

impl<M: GuestMemory> Machine<M> {
    /// Bytes that [`save_devices`](Self::save_devices) puts behind the structure.
    pub fn devices_tail_bytes(&self) -> usize {
        self.devices.lock().pci.functions().count() * size_of::<PciFunction>()
    }

    /// Saves the devices, once all virtual processors have stopped. Returns the bytes of `tail` that are in use.
    ///
    /// # Errors
    /// [`Full`] if `tail` is too short.
    pub fn save_devices(&self, into: &mut state::Devices, tail: &mut [u8]) -> Result<usize, Full> {
        let devices = self.devices.lock();
        into.serial = serial(&devices.serial.state());
        cmos(&devices.cmos.state(), &mut into.cmos);
        into.ioapic = ioapic(&devices.ioapic.state());
        into.small = small(&devices);
        let mut used = 0;
        for (slot, config) in devices.pci.functions() {
            let place = tail.get_mut(used..).ok_or(Full)?;
            let (function, _) = PciFunction::mut_from_prefix(place).map_err(|_| Full)?;
            (function.slot, function.zero) = (u32::from(slot.0).into(), 0.into());
            function.config = *config;
            used += size_of::<PciFunction>();
        }
        Ok(used)
    }

    /// Puts the devices into a saved state.
    ///
    /// # Errors
    /// [`StateError`] if this machine's devices cannot be in it; then nothing has changed.
    pub fn restore_devices(&self, from: &state::Devices, tail: &[u8]) -> Result<(), StateError> {
        let functions = <[PciFunction]>::ref_from_bytes(tail).ok();
        let functions = functions.filter(|functions| functions.len() == from.small.pci_functions.get() as usize);
        let functions =
            functions.ok_or(StateError { field: "pci.functions", reason: "not as many as it says, or cut off" })?;
        let serial = restored_serial(&from.serial)?;
        let cmos = restored_cmos(&from.cmos)?;
        let ioapic = restored_ioapic(&from.ioapic)?;
        let power = PowerState { sleep_control: from.small.sleep_control, reset_control: from.small.reset_control };
        let power = Power::from_state(power)?;
        let pvpanic = restored_pvpanic(from.small.panic_event.get())?;
        let mut devices = self.devices.lock();
        let debug_exit = restored_debug_exit(&from.small, devices.debug_exit.is_some())?;
        let address = from.small.pci_address.get();
        devices.pci.restore_each(address, functions.iter().map(|one| (one.slot.get(), &one.config)))?;
        let Devices { serial: a, cmos: b, ioapic: c, power: d, pvpanic: e, debug_exit: f, pci: _ } = &mut *devices;
        (*a, *b, *c, *d, *e, *f) = (serial, cmos, ioapic, power, pvpanic, debug_exit);
        Ok(())
    }
}

fn serial(from: &SerialState) -> state::Serial {
    let mut received = [0; FIFO_BYTES];
    received.iter_mut().zip(&from.received).for_each(|(place, byte)| *place = *byte);
    let overrun = if from.overrun { serial_flag::OVERRUN } else { 0 };
    let empty = if from.transmit_empty_pending { serial_flag::TRANSMIT_EMPTY } else { 0 };
    state::Serial {
        received,
        received_count: from.received.len() as u8,
        interrupt_enable: from.interrupt_enable,
        fifo_control: from.fifo_control,
        line_control: from.line_control,
        modem_control: from.modem_control,
        modem_changes: from.modem_changes,
        scratch: from.scratch,
        flags: overrun | empty,
        divisor: from.divisor.into(),
        zero: [0; 6],
    }
}

fn restored_serial(from: &state::Serial) -> Result<Serial, StateError> {
    let received = from.received.get(..usize::from(from.received_count));
    let received = received.ok_or(StateError { field: "serial.received", reason: "more bytes than the FIFO holds" })?;
    if from.flags & !serial_flag::ALL != 0 {
        return Err(StateError { field: "serial.flags", reason: "a flag is unknown" });
    }
    Serial::from_state(SerialState {
        received: received.iter().copied().collect(),
        divisor: from.divisor.get(),
        interrupt_enable: from.interrupt_enable,
        fifo_control: from.fifo_control,
        line_control: from.line_control,
        modem_control: from.modem_control,
        modem_changes: from.modem_changes,
        scratch: from.scratch,
        overrun: from.flags & serial_flag::OVERRUN != 0,
        transmit_empty_pending: from.flags & serial_flag::TRANSMIT_EMPTY != 0,
    })
}

fn cmos(from: &CmosState, into: &mut state::Cmos) {
    *into = state::Cmos {
        offset_seconds: from.offset_seconds.into(),
        held_time: from.held_time,
        index: from.index,
        register_a: from.register_a,
        register_b: from.register_b,
        zero: [0; 5],
        ram: from.ram,
    };
}

fn restored_cmos(from: &state::Cmos) -> Result<Cmos, StateError> {
    Cmos::from_state(CmosState {
        index: from.index,
        register_a: from.register_a,
        register_b: from.register_b,
        offset_seconds: from.offset_seconds.get(),
        held_time: from.held_time,
        ram: from.ram,
    })
}

fn ioapic(from: &IoapicState) -> state::Ioapic {
    state::Ioapic {
        entries: from.entries.map(Into::into),
        lines: from.lines.into(),
        index: from.index,
        id: from.id,
        zero: [0; 2],
    }
}

fn restored_ioapic(from: &state::Ioapic) -> Result<Ioapic, StateError> {
    let entries = from.entries.map(|entry| entry.get());
    Ioapic::from_state(IoapicState { index: from.index, id: from.id, entries, lines: from.lines.get() })
}

fn small(devices: &Devices) -> state::Small {
    let exit_code = devices.debug_exit.as_ref().and_then(|device| device.state().last_code);
    let power = devices.power.state();
    state::Small {
        pci_address: devices.pci.address().into(),
        pci_functions: (devices.pci.functions().count() as u32).into(),
        debug_exit_code: exit_code.map_or(0, |code| code.0).into(),
        flags: if exit_code.is_some() { small_flag::DEBUG_EXIT_WRITTEN } else { 0 }.into(),
        panic_event: match devices.pvpanic.last_event() {
            None => 0,
            Some(PanicEvent::Panicked) => 1,
            Some(PanicEvent::CrashLoaded) => 2,
        }
        .into(),
        sleep_control: power.sleep_control,
        reset_control: power.reset_control,
        zero: [0; 2],
    }
}

fn restored_pvpanic(event: u32) -> Result<Pvpanic, StateError> {
    let last_event = match event {
        0 => None,
        1 => Some(PanicEvent::Panicked),
        2 => Some(PanicEvent::CrashLoaded),
        _ => return Err(StateError { field: "pvpanic.last_event", reason: "it is unknown" }),
    };
    Pvpanic::from_state(PvpanicState { last_event })
}

fn restored_debug_exit(from: &state::Small, is_there: bool) -> Result<Option<DebugExit>, StateError> {
    let is_written = match from.flags.get() {
        0 => false,
        small_flag::DEBUG_EXIT_WRITTEN => true,
        _ => return Err(StateError { field: "small.flags", reason: "a flag is unknown" }),
    };
    if is_written && !is_there {
        return Err(StateError { field: "debug_exit.last_code", reason: "this machine has no such port" });
    }
    let last_code = is_written.then_some(DebugExitCode(from.debug_exit_code.get()));
    is_there.then(|| DebugExit::from_state(DebugExitState { last_code })).transpose()
}

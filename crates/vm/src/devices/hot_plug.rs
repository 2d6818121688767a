// SPDX-License-Identifier: MIT OR Apache-2.0
//! The controller by which PCI functions come and go while the guest runs.
//!
//! The guest's ACPI tables describe it: a line of the I/O APIC, which a Generic Event Device (ACPI 6.5, section 5.6.9)
//! handles, and three registers of 32 bits, in which bit `n` is the device with number `n` of bus 0.
//!
//! | port | read | write |
//! |---|---|---|
//! | 0 | devices to check: one came, or vanished; bit 0: the whole bus | bits that are set have been seen |
//! | 4 | devices that the guest is asked to eject | bits that are set have been seen |
//! | 8 | 0 | the guest ejects these devices |
//!
//! The line is asserted while there is anything to be seen, so nothing is lost before the guest's driver is there. A
//! device that the guest ejects without having been asked stays its own.

mod on_bus;

use super::StateError;
use super::outputs::Outputs;
use crate::platform::layout::HOT_PLUG_GSI;

/// Device numbers of a bus; 0 is the host bridge's, which neither comes nor goes.
pub const DEVICES: core::ops::Range<u8> = 1..32;
/// The bit of the whole bus.
const BUS: u32 = 1 << 0;

/// Registers, by their offset from the first port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Register {
    Checks,
    Requests,
    Eject,
}

/// Everything about the controller that outlives a hypervisor image: sets of devices by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HotPlugState {
    /// Devices that the guest is still to check; bit 0: the whole bus.
    pub checks: u32,
    /// Devices that the guest is still to be asked to eject.
    pub requests: u32,
    /// Devices that the host has asked for and the guest has not ejected.
    pub asked: u32,
    /// Devices that the guest has ejected and the host has not taken.
    pub ejected: u32,
}

/// The controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotPlug {
    state: HotPlugState,
}

impl Default for HotPlug {
    fn default() -> Self {
        Self::new()
    }
}

impl HotPlug {
    /// The controller of a guest for which nothing waits.
    pub const fn new() -> Self {
        Self { state: HotPlugState { checks: 0, requests: 0, asked: 0, ejected: 0 } }
    }

    /// The guest is to check a device that has come.
    pub fn check(&mut self, device: u8, outputs: &mut Outputs) {
        self.state.checks |= bit(device);
        self.set_line(outputs);
    }

    /// The guest is asked to eject a device, again if it was before; not if it has ejected it.
    pub fn request(&mut self, device: u8, outputs: &mut Outputs) {
        let wanted = bit(device) & !self.state.ejected;
        self.state.requests |= wanted;
        self.state.asked |= wanted;
        self.set_line(outputs);
    }

    /// The devices that the guest has ejected, as a set: they are the host's.
    pub fn take_ejected(&mut self) -> u32 {
        core::mem::take(&mut self.state.ejected)
    }

    /// A device was taken without the guest: nothing about it waits any more, and the guest is to check the bus.
    pub fn remove(&mut self, device: u8, outputs: &mut Outputs) {
        let others = !bit(device);
        let HotPlugState { checks, requests, asked, ejected } = &mut self.state;
        for set in [&mut *checks, requests, asked, ejected] {
            *set &= others;
        }
        *checks |= BUS;
        self.set_line(outputs);
    }

    /// Returns whether the guest was asked to eject a device, and the host has not taken it.
    pub fn is_leaving(&self, device: u8) -> bool {
        (self.state.asked | self.state.ejected) & bit(device) != 0
    }

    /// Returns the state that the next image needs to go on.
    pub const fn state(&self) -> HotPlugState {
        self.state
    }

    /// The controller in a saved state.
    ///
    /// # Errors
    /// [`StateError`] if no controller can be in it.
    pub const fn from_state(state: HotPlugState) -> Result<Self, StateError> {
        let HotPlugState { requests, asked, ejected, .. } = state;
        if (requests | asked | ejected) & BUS != 0 || requests & !asked != 0 || asked & ejected != 0 {
            return Err(StateError { field: "hot_plug.asked", reason: "no device can be asked for so" });
        }
        Ok(Self { state })
    }

    fn read(&self, register: Register) -> u32 {
        match register {
            Register::Checks => self.state.checks,
            Register::Requests => self.state.requests,
            Register::Eject => 0,
        }
    }

    /// The guest writes a register; returns whether it has ejected a device that the host has asked for.
    fn write(&mut self, register: Register, value: u32, outputs: &mut Outputs) -> bool {
        match register {
            Register::Checks => self.state.checks &= !value,
            Register::Requests => self.state.requests &= !value,
            Register::Eject => {
                let ejected = self.state.asked & value;
                self.state.asked &= !ejected;
                self.state.requests &= !ejected;
                self.state.ejected |= ejected;
                self.set_line(outputs);
                return ejected != 0;
            }
        }
        self.set_line(outputs);
        false
    }

    const fn is_asserted(&self) -> bool {
        self.state.checks | self.state.requests != 0
    }

    fn set_line(&self, outputs: &mut Outputs) {
        outputs.set_line(HOT_PLUG_GSI, self.is_asserted());
    }
}

/// The bit of a device that can come and go; none for another number.
const fn bit(device: u8) -> u32 {
    if device == 0 || device >= DEVICES.end { 0 } else { 1 << device }
}

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A physical function that belongs to a guest: the guest's side of it.
//!
//! The guest configures a virtual function, built once from a [`Description`] of the physical one. The hardware keeps
//! the addresses that the host has given it; the guest moves only where its ranges are mapped in its address space.
//!
//! ```text
//! guest ─┬─ configuration ──► Function (virtual) ── PASSED: bus mastering, INTx disable ──► hardware
//!        ├─ ranges, mapped pages ─────────────────────────────────────────────────────────► hardware, without an exit
//!        ├─ ranges, other pages ─┬─ MSI-X table and pending bits: Function
//!        │                       └─ the rest: Physical::read, Physical::write ────────────► hardware
//!        └─ interrupts ◄──────────── Function: masks, pending bits ◄── Endpoint::raise ◄── the host
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `physical` | the host's work for it |
//! | `probe`, `prober`, `ranges`, `capabilities`, `problem` | reading the hardware as untrusted input |
//! | `virtio` | the capabilities by which a virtio driver finds its registers |
//! | `description`, `space` | the function that the guest is shown, and its virtual configuration space |
//! | `passed` | the bits of the guest's writes that reach the hardware |
//! | `mapping`, `vectors` | which pages are mapped, which interrupts are open |
//! | `saved`, `state`, `hosts` | its state in the hand-over; the host's operations on it |

mod capabilities;
mod description;
mod hosts;
mod mapping;
mod passed;
mod physical;
mod probe;
mod prober;
mod problem;
mod ranges;
mod saved;
mod space;
mod state;
mod vectors;
mod virtio;

use ::pci::sriov::guest::GuestCapability;
use handover::Full;
use handover::state::DeviceKind;

use super::bar::{BARS, Windows};
use super::behind::Behind;
use super::endpoint::Endpoint;
use super::function::Function;
use super::slot::Slot;
use crate::addr::AccessSize;
use crate::devices::StateError;
use crate::devices::device::{At, Context};
use crate::devices::outputs::Outputs;

use mapping::Mapping;
use passed::Command;
use space::Places;
use vectors::Vectors;

pub use description::{Description, Identity, Range};
pub use passed::{PASSED, Passed};
pub use physical::{HostIdentity, Interrupts, LINE, Phase, Physical, Piece, Raised, Route, VirtualFunctions};
pub use problem::{Problem, Reason};
pub use virtio::{Registers, Structures};

const NOT_MAPPED: &Windows = &[None; BARS];

/// A physical function behind its virtual registers.
#[derive(Debug)]
pub struct Assigned<P> {
    physical: P,
    description: Description,
    places: Places,
    command: Command,
    mapping: Mapping,
    vectors: Vectors,
    phase: Phase,
    /// The line is asserted until the guest ends the interrupt.
    is_line_asserted: bool,
    /// A range that it decodes has changed otherwise than by a write to the header.
    has_moved: bool,
    /// Its SR-IOV capability, where virtual functions are approved.
    sriov: Option<GuestCapability>,
}

impl<P: Physical> Assigned<P> {
    /// The described function in a slot of the guest's bus; `None` if there can be none such. The hardware is not
    /// accessed.
    pub fn in_slot(slot: Slot, description: Description, physical: P) -> Option<Endpoint<Self>> {
        let (function, places) = space::build(&description)?;
        let device = physical.virtual_functions().device;
        let assigned = Self {
            physical,
            description,
            places,
            command: Command::new(&description),
            mapping: Mapping::default(),
            vectors: Vectors::new(&description),
            phase: Phase::Ready,
            is_line_asserted: false,
            has_moved: false,
            sriov: GuestCapability::new(description.virtual_functions, device),
        };
        Some(Endpoint::new(slot, function, assigned))
    }

    /// Lets the hardware follow the guest's registers.
    fn follow(&mut self, function: &mut Function, outputs: &mut Outputs) {
        let bits = self.command.wanted(function);
        let wanted = Vectors::wanted(function, !Command::is_intx_disabled(bits));
        if wanted != Interrupts::Line {
            self.lower(function, outputs);
        }
        self.vectors.set(wanted, function, &mut self.physical);
        if !self.command.pass(bits, &mut self.physical) {
            self.vanish(function, outputs);
        }
    }

    /// The line is not asserted any more.
    fn lower(&mut self, function: &mut Function, outputs: &mut Outputs) {
        if let Some(pin) = self.description.line.filter(|_| self.is_line_asserted) {
            self.is_line_asserted = false;
            function.change(space::STATUS, space::INTERRUPT_STATUS, 0);
            outputs.set_line(pin, false);
        }
    }

    /// The guest reaches nothing of the function any more, and the function neither memory nor CPUs. False if it does
    /// not answer.
    fn quiesce(&mut self, function: &mut Function, outputs: &mut Outputs) -> bool {
        self.mapping.unmap_others(NOT_MAPPED, &self.description, &mut self.physical);
        self.has_moved = true;
        self.lower(function, outputs);
        function.reset();
        self.end_virtual_functions();
        self.vectors.close(&mut self.physical);
        self.command.pass(Command::quiet(), &mut self.physical)
    }

    fn end_virtual_functions(&mut self) {
        let Some(sriov) = &mut self.sriov else { return };
        sriov.reset();
        self.physical.set_virtual_functions(0);
    }

    fn vanish(&mut self, function: &mut Function, outputs: &mut Outputs) {
        self.phase = Phase::Gone;
        self.quiesce(function, outputs);
    }

    /// The guest resets the function (PCI Express Base 5.0, section 6.6.2). One that cannot be reset is gone: the guest
    /// must not take it for one that was.
    fn begin_reset(&mut self, function: &mut Function, outputs: &mut Outputs) {
        let is_there = self.quiesce(function, outputs);
        let is_begun = is_there && self.physical.reset();
        self.phase = if is_begun { Phase::Resetting } else { Phase::Gone };
    }

    /// Returns whether the guest has asked for a reset; the bit reads as zero.
    fn take_reset(&self, function: &mut Function) -> bool {
        let Some(register) = self.places.reset.map(|at| at + space::DEVICE_CONTROL_HIGH) else { return false };
        let is_asked = function.read(register) & space::INITIATE_RESET != 0;
        function.change(register, space::INITIATE_RESET, 0);
        is_asked
    }

    /// A power state that the function does not have is ignored: it is in D0 then.
    fn check_power(&self, function: &mut Function) {
        let Some(register) = self.places.power.map(|at| at + space::POWER_CONTROL) else { return };
        if matches!(function.read(register) & space::POWER_STATE, 1 | 2) {
            function.change(register, space::POWER_STATE, 0);
        }
    }

    fn may_be_forwarded(&self, at: At) -> bool {
        let is_ports = self.description.range(at.range).is_some_and(|range| range.bar.space() == super::Space::Io);
        let has_size = !is_ports || at.size != AccessSize::Qword;
        has_size && self.description.may_be_forwarded(at.range, at.offset, at.size.bytes() as u64)
    }
}

impl<P: Physical> Behind for Assigned<P> {
    fn kind(&self) -> u32 {
        // An image that knows neither lines nor virtual functions is refused by these kinds, which it does not know.
        let kind = match (self.sriov, self.description.line) {
            (Some(_), _) => DeviceKind::SriovFunction,
            (None, Some(_)) => DeviceKind::LineFunction,
            (None, None) => DeviceKind::AssignedFunction,
        };
        kind as u32
    }

    fn read_extended(&self, offset: u16) -> u32 {
        self.sriov.map_or(u32::MAX, |sriov| sriov.read(offset))
    }

    fn write_extended(&mut self, offset: u16, bytes: &[u8]) {
        let Some(sriov) = &mut self.sriov else { return };
        let before = sriov.wanted();
        sriov.write(offset, bytes);
        if sriov.wanted() != before {
            self.physical.set_virtual_functions(sriov.wanted());
        }
    }

    fn virtual_functions(&self) -> u8 {
        self.sriov.map_or(0, |sriov| sriov.wanted())
    }

    fn read(&mut self, at: At, _: &mut Function, _: &mut Context<'_>) -> u64 {
        match self.may_be_forwarded(at) {
            true => self.physical.read(at.range, at.offset, at.size),
            false => at.size.mask(),
        }
    }

    fn write(&mut self, at: At, value: u64, _: &mut Function, _: &mut Context<'_>) {
        if self.may_be_forwarded(at) {
            self.physical.write(at.range, at.offset, at.size, value);
        }
    }

    fn after_config_write(&mut self, _: u8, function: &mut Function, context: &mut Context<'_>) {
        self.check_power(function);
        match self.take_reset(function) {
            true => self.begin_reset(function, context.outputs),
            false => self.follow(function, context.outputs),
        }
    }

    fn after_vector_write(&mut self, vector: u16, function: &mut Function) {
        self.vectors.open(vector, function, &mut self.physical);
    }

    fn is_present(&self) -> bool {
        self.phase == Phase::Ready
    }

    fn take_moved(&mut self) -> bool {
        core::mem::take(&mut self.has_moved)
    }

    fn maps_ranges(&self) -> bool {
        true
    }

    fn unmap_others(&mut self, windows: &Windows) {
        self.mapping.unmap_others(windows, &self.description, &mut self.physical);
    }

    fn map(&mut self, windows: &Windows) {
        self.mapping.map(windows, &self.description, &mut self.physical);
    }

    fn line(&self) -> Option<u8> {
        self.description.line
    }

    fn end_line(&mut self, function: &mut Function, outputs: &mut Outputs) {
        let was_asserted = self.is_line_asserted;
        self.lower(function, outputs);
        if was_asserted {
            self.physical.unmask();
        }
    }

    /// The registers are as after power-on already. The host resets the hardware before the guest goes on.
    fn reset(&mut self) {
        self.mapping.unmap_others(NOT_MAPPED, &self.description, &mut self.physical);
        self.has_moved = true;
        self.is_line_asserted = false;
        self.end_virtual_functions();
        self.vectors.close(&mut self.physical);
        if !self.command.pass(Command::quiet(), &mut self.physical) {
            self.phase = Phase::Gone;
        }
    }

    fn state_bytes(&self) -> usize {
        self.saved_bytes()
    }

    fn save(&self, into: &mut [u8]) -> Result<usize, Full> {
        self.save_state(into)
    }

    fn restore(&mut self, _: u32, from: &[u8]) -> Result<(), StateError> {
        self.restore_state(from)
    }
}

#[cfg(test)]
mod tests;

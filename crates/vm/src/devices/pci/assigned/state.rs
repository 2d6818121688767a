// SPDX-License-Identifier: MIT OR Apache-2.0
//! A function's state in the hand-over: its description and what the guest has made of it, the MSI-X vectors that are
//! open, and where the host receives each open vector.

use ::pci::sriov::enabling;
use ::pci::sriov::guest::GuestCapability;
use handover::Full;
use handover::state::{self, AssignedFunction, assigned_flag};
use zerocopy::FromBytes as _;

use super::description::Description;
use super::passed::Command;
use super::physical::{Interrupts, LINE, Phase, Physical, Route, VirtualFunctions};
use super::saved;
use super::vectors::Vectors;
use super::{Assigned, StateError};
use crate::devices::piece;

/// The SR-IOV capability, and the virtual functions as far as they are known.
type SavedSriov = (GuestCapability, VirtualFunctions);

/// A state that was read and can be.
struct Adopted<'a> {
    phase: Phase,
    interrupts: Interrupts,
    passed: u16,
    is_line_asserted: bool,
    sriov: Option<SavedSriov>,
    opened: &'a [[u8; 8]],
    routes: &'a [[u8; 8]],
}

fn refused(reason: &'static str) -> StateError {
    StateError { field: "pci.functions.assigned", reason }
}

impl Adopted<'_> {
    fn opened(&self) -> impl Iterator<Item = u64> + Clone {
        self.opened.iter().map(|word| u64::from_le_bytes(*word))
    }

    fn routes(&self) -> impl Iterator<Item = Route> {
        self.routes.iter().map(|word| saved::route(u64::from_le_bytes(*word)))
    }
}

impl<P: Physical> Assigned<P> {
    pub(super) fn saved(&self) -> AssignedFunction {
        let mut state = self.description.save(self.physical.identity());
        let line = if self.is_line_asserted { assigned_flag::LINE_ASSERTED } else { 0 };
        state.flags = (state.flags.get() | line).into();
        state.passed = self.command.passed.into();
        state.phase = saved::phase_number(self.phase);
        state.interrupts = saved::interrupts_number(self.vectors.interrupts);
        state
    }

    pub(super) fn saved_bytes(&self) -> usize {
        let has_line = self.description.line.is_some();
        let words = self.vectors.opened.len() + self.vectors.most(self.description.msi) + usize::from(has_line);
        let sriov = self.sriov.map_or(0, |_| size_of::<state::VirtualFunctions>());
        size_of::<AssignedFunction>() + sriov + words * size_of::<u64>()
    }

    pub(super) fn save_state(&self, into: &mut [u8]) -> Result<usize, Full> {
        let mut used = piece::save(&self.saved(), into)?;
        if let Some(sriov) = &self.sriov {
            used += piece::save(&self.saved_virtual(sriov), into.get_mut(used..).ok_or(Full)?)?;
        }
        let line = self.description.line.map(|_| LINE);
        let routes = self.vectors.each().chain(line).map(|vector| saved::route_word(self.physical.route(vector)));
        for word in self.vectors.opened.iter().copied().chain(routes) {
            used += piece::save(&word.to_le_bytes(), into.get_mut(used..).ok_or(Full)?)?;
        }
        Ok(used)
    }

    fn saved_virtual(&self, sriov: &GuestCapability) -> state::VirtualFunctions {
        let VirtualFunctions { device, sizes } = self.physical.virtual_functions();
        let (control, number) = sriov.saved();
        let (device, control, number) = (device.into(), control.into(), number.into());
        state::VirtualFunctions { device, control, number, sizes, zero: 0.into() }
    }

    /// Reads the saved state of virtual functions, where the function may have any.
    fn read_virtual<'a>(&self, from: &'a [u8]) -> Result<(Option<SavedSriov>, &'a [u8]), StateError> {
        if self.sriov.is_none() {
            return Ok((None, from));
        }
        let cut_off = refused("what is saved of its virtual functions is cut off");
        let (saved, rest) = state::VirtualFunctions::read_from_prefix(from).map_err(|_| cut_off)?;
        let known = VirtualFunctions { device: saved.device.get(), sizes: saved.sizes };
        let fresh = GuestCapability::new(self.description.virtual_functions, known.device);
        let sriov = fresh.and_then(|fresh| fresh.restored(saved.control.get(), saved.number.get()));
        let sriov = sriov.filter(|_| known.sizes.iter().all(|bits| *bits == 0 || enabling::BITS.contains(bits)));
        let sriov = sriov.ok_or(refused("its virtual functions cannot be so"))?;
        Ok((Some((sriov, known)), rest))
    }

    /// The hardware is not accessed: it is as the image before has left it.
    pub(super) fn restore_state(&mut self, from: &[u8]) -> Result<(), StateError> {
        let adopted = self.read(from)?;
        self.vectors.opened.iter_mut().zip(adopted.opened()).for_each(|(word, saved)| *word = saved);
        self.vectors.interrupts = adopted.interrupts;
        (self.phase, self.command.passed) = (adopted.phase, adopted.passed);
        let line = self.description.line.map(|_| LINE);
        self.physical.adopt(adopted.interrupts, &mut self.vectors.each().chain(line).zip(adopted.routes()));
        if let Some((sriov, known)) = adopted.sriov {
            self.physical.adopt_virtual_functions(sriov.wanted(), known);
            self.sriov = Some(sriov);
        }
        self.is_line_asserted = adopted.is_line_asserted && self.description.line.is_some();
        Ok(())
    }

    /// Reads a state; the error is why this function cannot be in it.
    fn read<'a>(&self, from: &'a [u8]) -> Result<Adopted<'a>, StateError> {
        let (state, words) = AssignedFunction::read_from_prefix(from).map_err(|_| refused("its state is cut off"))?;
        if Description::from_saved(from)? != self.description {
            return Err(refused("it is another function's"));
        }
        let other_length = refused("its state has another length");
        let (sriov, words) = self.read_virtual(words)?;
        let (words, rest) = words.as_chunks::<8>();
        let (opened, routes) = words.split_at_checked(self.vectors.opened.len()).ok_or(other_length)?;
        let adopted = Adopted {
            phase: saved::phase(state.phase)?,
            interrupts: saved::interrupts(state.interrupts)?,
            passed: state.passed.get(),
            is_line_asserted: state.flags.get() & assigned_flag::LINE_ASSERTED != 0,
            sriov,
            opened,
            routes,
        };
        if !self.vectors.is_possible(adopted.opened()) || !Command::is_possible(adopted.passed) {
            return Err(refused("a bit is set that is never set"));
        }
        let count = Vectors::count(adopted.interrupts, adopted.opened());
        let line = self.description.line.and_then(|_| adopted.routes().nth(count));
        let words = count + usize::from(self.description.line.is_some());
        if adopted.routes().count() != words || !rest.is_empty() {
            return Err(other_length);
        }
        let is_possible = |route: Route| route.gsi == 0 && self.physical.is_possible(route);
        let is_right = match line {
            Some(line) if adopted.interrupts == Interrupts::Line => self.physical.is_possible(line),
            Some(line) => line == Route { gsi: line.gsi, ..Route::default() },
            None => adopted.interrupts != Interrupts::Line,
        };
        if !is_right || !adopted.routes().take(count).all(is_possible) {
            return Err(refused("an interrupt is received where none can be"));
        }
        Ok(adopted)
    }
}

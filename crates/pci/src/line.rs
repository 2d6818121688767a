// SPDX-License-Identifier: MIT OR Apache-2.0
//! INTx lines of functions that guests have (PCI Local Bus 3.0, section 2.2.6): the functions behind an I/O APIC's
//! input, those of them that have interrupted, and the check for a line that no driver serves.

use arrayvec::ArrayVec;

use crate::{Bdf, ConfigSpace};

/// Functions with lines at most.
pub const MOST: usize = 16;

/// Command and status registers.
const COMMAND_STATUS: u16 = 0x04;
/// Status: the function has an interrupt for its line.
const INTERRUPT_STATUS: u32 = 1 << 19;

/// Returns whether a function reports an interrupt for its line (section 6.2.3).
pub fn reports_interrupt(config: &mut impl ConfigSpace, function: Bdf) -> bool {
    config.read(function, COMMAND_STATUS) & INTERRUPT_STATUS != 0
}

/// A function that has an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Global system interrupt of the input.
    pub gsi: u32,
    /// The function.
    pub function: Bdf,
    /// The number of the guest that has the function.
    pub guest: u16,
    /// The number of the function among the guest's.
    pub number: u16,
    /// The CPU's vector that the input sends; `None` while the function's line is closed.
    pub vector: Option<u8>,
}

/// The reason for which a function cannot have an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A function of another guest has it, this one: an interrupt would be both guests', and each could keep it from
    /// the other.
    Taken(Bdf),
    /// [`MOST`] functions have one.
    Full,
}

/// The functions for which a shared input has interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupted {
    /// Those that report an interrupt.
    Reported,
    /// None: the guest has served it meanwhile. The input is to be unmasked, and interrupts again if it was not so.
    Served,
    /// All with open lines: none reports one, now for the second time in a row. PCI 2.2 had no bit for it in the status
    /// register.
    All,
    /// None, since no line is open.
    Closed,
}

/// The inputs that functions have. Functions of one guest may share one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    taken: ArrayVec<Claim, MOST>,
    /// Shared inputs for whose last interrupt no function reported one.
    unreported: ArrayVec<u32, MOST>,
}

impl Claims {
    /// No lines.
    pub const fn new() -> Self {
        Self { taken: ArrayVec::new_const(), unreported: ArrayVec::new_const() }
    }

    /// Assigns an input to a function, in place of one that it had.
    ///
    /// # Errors
    /// [`Refused`]; the function keeps what it had.
    pub fn claim(&mut self, claim: Claim) -> Result<(), Refused> {
        let is_another = |taken: &&Claim| taken.gsi == claim.gsi && taken.guest != claim.guest;
        if let Some(other) = self.taken.iter().filter(|taken| taken.function != claim.function).find(is_another) {
            return Err(Refused::Taken(other.function));
        }
        match self.taken.iter_mut().find(|taken| taken.function == claim.function) {
            Some(own) => *own = claim,
            None => self.taken.try_push(claim).map_err(|_| Refused::Full)?,
        }
        Ok(())
    }

    /// Releases a function's input.
    pub fn release(&mut self, function: Bdf) {
        self.taken.retain(|claim| claim.function != function);
        self.unreported.retain(|gsi| self.taken.iter().any(|claim| claim.gsi == *gsi));
    }

    /// The vector that a function's input sends from here on; `None` once its line is closed.
    pub fn set_vector(&mut self, function: Bdf, vector: Option<u8>) {
        self.taken.iter_mut().filter(|claim| claim.function == function).for_each(|claim| claim.vector = vector);
    }

    /// The input of a guest's function.
    pub fn gsi_of(&self, guest: u16, number: u16) -> Option<u32> {
        self.taken.iter().find(|claim| (claim.guest, claim.number) == (guest, number)).map(|claim| claim.gsi)
    }

    /// The vector that a function's input sends, while its line is open.
    pub fn vector_of(&self, function: Bdf) -> Option<u8> {
        self.taken.iter().find(|claim| claim.function == function)?.vector
    }

    /// Another function with an open line at the same input.
    pub fn partner(&self, gsi: u32, function: Bdf) -> Option<Claim> {
        self.open(gsi).find(|claim| claim.function != function)
    }

    /// The functions with open lines at an input.
    pub fn at(&self, gsi: u32) -> ArrayVec<Claim, MOST> {
        self.open(gsi).collect()
    }

    /// Whether several functions have an input, with open lines or not. One alone needs no access to its registers; one
    /// beside others whose lines are closed may not be the one that has interrupted: theirs may have been open then.
    pub fn is_shared(&self, gsi: u32) -> bool {
        self.taken.iter().filter(|claim| claim.gsi == gsi).nth(1).is_some()
    }

    /// Notes whether a function with an open line has reported an interrupt, since a shared input has interrupted.
    pub fn note_interrupt(&mut self, gsi: u32, is_reported: bool) -> Interrupted {
        let was_unreported = self.unreported.contains(&gsi);
        self.unreported.retain(|other| *other != gsi);
        if is_reported {
            return Interrupted::Reported;
        }
        // There is room, since there are no more inputs than functions.
        let is_first = !was_unreported && self.unreported.try_push(gsi).is_ok();
        match self.open(gsi).next() {
            None => Interrupted::Closed,
            Some(_) if is_first => Interrupted::Served,
            Some(_) => Interrupted::All,
        }
    }

    fn open(&self, gsi: u32) -> impl Iterator<Item = Claim> + '_ {
        self.taken.iter().filter(move |claim| claim.gsi == gsi && claim.vector.is_some()).copied()
    }
}

/// Ends of a line's interrupt at which the line was still asserted, without one between at which it was not. A guest
/// that serves its device ends this row again and again; one that does not would be interrupted for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unserved {
    ends: u32,
}

impl Unserved {
    /// Length of a row from which on the line counts as served by no driver.
    pub const LIMIT: u32 = 10_000;

    /// Notes that the guest has ended an interrupt. `is_asserted`: the line has interrupted again at once. Returns
    /// whether that was once too often.
    pub fn note_end(&mut self, is_asserted: bool) -> bool {
        self.ends = if is_asserted { self.ends.saturating_add(1) } else { 0 };
        self.ends >= Self::LIMIT
    }
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;

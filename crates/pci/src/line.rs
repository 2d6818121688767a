// SPDX-License-Identifier: MIT OR Apache-2.0
//! INTx lines of functions that guests have (PCI Local Bus 3.0, section 2.2.6): the function behind an I/O APIC's
//! input, and the check for a line that no driver serves.

use crate::Bdf;

/// Inputs that functions have at most.
pub const MOST: usize = 16;

/// The reason for which a function cannot have an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is this function's: an interrupt would be both guests', and each could keep it from the other.
    Taken(Bdf),
    /// [`MOST`] functions have one.
    Full,
}

/// The inputs that functions have, by their global system interrupts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    taken: [Option<(u32, Bdf)>; MOST],
}

impl Claims {
    /// No lines.
    pub const fn new() -> Self {
        Self { taken: [None; MOST] }
    }

    /// Assigns an input to a function, in place of one that it had.
    ///
    /// # Errors
    /// [`Refused`]; the function keeps what it had.
    pub fn claim(&mut self, gsi: u32, function: Bdf) -> Result<(), Refused> {
        let others = self.taken.iter().flatten().find(|(taken, owner)| *taken == gsi && *owner != function);
        if let Some((_, owner)) = others {
            return Err(Refused::Taken(*owner));
        }
        let own = self.taken.iter().position(|claim| claim.is_some_and(|(_, owner)| owner == function));
        let free = || self.taken.iter().position(Option::is_none);
        let at = own.or_else(free).ok_or(Refused::Full)?;
        self.taken[at] = Some((gsi, function));
        Ok(())
    }

    /// Releases a function's input.
    pub fn release(&mut self, function: Bdf) {
        self.taken.iter_mut().filter(|claim| claim.is_some_and(|(_, owner)| owner == function)).for_each(|claim| {
            *claim = None;
        });
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access Control Services: they send a function's requests upwards, through the IOMMU, and not to its neighbours
//! (PCI Express Base 5.0, sections 6.12 and 7.7.7).

use crate::{Bdf, ConfigSpace, ConfigWrite, extended};

/// The extended capability's identifier.
const ID: u16 = 0x000d;
/// The Capability register is the lower half of this word, the Control register the upper half.
const WORD: u16 = 4;
const CONTROL: u16 = 6;
const BYTES: u16 = 8;

/// Requests name the function that they are from: Source Validation.
const SOURCE_VALIDATION: u16 = 1 << 0;
/// Requests to neighbours go upwards: P2P Request Redirect.
const REQUEST_REDIRECT: u16 = 1 << 2;
/// So do completions: P2P Completion Redirect.
const COMPLETION_REDIRECT: u16 = 1 << 3;
/// Upstream Forwarding: requests and completions that came back from above go up again.
const UPSTREAM_FORWARDING: u16 = 1 << 4;
/// A vector exempts neighbours from the redirection: P2P Egress Control.
const EGRESS_CONTROL: u16 = 1 << 5;
/// Translated requests are exempt from it: Direct Translated P2P.
const DIRECT_TRANSLATED: u16 = 1 << 6;

const REQUIRED: u16 = SOURCE_VALIDATION | REQUEST_REDIRECT | COMPLETION_REDIRECT | UPSTREAM_FORWARDING;
const EXEMPTIONS: u16 = EGRESS_CONTROL | DIRECT_TRANSLATED;

/// The ACS capability of a function, as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acs {
    /// The first register of the capability.
    pub(crate) register: u16,
    /// The services that it has.
    pub(crate) services: u16,
    /// Those that are enabled.
    pub(crate) control: u16,
}

impl Acs {
    /// Reads a function's capability; `None` if it has none, or if nothing shows its extended registers.
    pub fn read(config: &mut dyn ConfigSpace, place: Bdf) -> Option<Self> {
        let register = extended::find(config, place, ID, BYTES)?;
        let word = config.read(place, register + WORD);
        let (services, control) = (word as u16, (word >> 16) as u16);
        (word != u32::MAX).then_some(Self { register, services, control })
    }

    /// Returns whether everything that the function sends or passes on goes upwards. A service that it does not have
    /// is one that it does not need (section 7.7.7.2).
    pub fn isolates(&self) -> bool {
        self.control & (self.services & REQUIRED | EXEMPTIONS) == self.services & REQUIRED
    }

    /// Returns whether any service is enabled.
    pub(crate) fn is_enabled(&self) -> bool {
        self.control != 0
    }

    /// Enables what was enabled when it was read: a reset of the function has disabled that.
    pub(crate) fn restore(&self, config: &mut dyn ConfigWrite, place: Bdf) {
        config.write16(place, self.register + CONTROL, self.control);
    }

    /// Makes the function isolate; returns whether it does so now. A reset of the function disables it again.
    pub fn enable(&mut self, config: &mut dyn ConfigWrite, place: Bdf) -> bool {
        if !self.isolates() {
            let control = (self.control | self.services & REQUIRED) & !EXEMPTIONS;
            config.write16(place, self.register + CONTROL, control);
            let word = config.read(place, self.register + WORD);
            self.control = (word >> 16) as u16;
        }
        self.isolates()
    }
}

#[cfg(test)]
#[path = "acs_tests.rs"]
mod tests;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Successive samples that may belong to one spin.

use crate::sample::{Sample, Sign};

/// Samples that may belong to one spin.
#[derive(Clone, Debug)]
pub(crate) struct Streak {
    /// The sample that the next one is compared with. Its place stays the first one's, so that a walk through code is
    /// no streak.
    anchor: Sample,
    pub(crate) clock_loops: u32,
    pub(crate) stands_still: u32,
    /// Since when interrupts were off at every sample.
    pub(crate) masked_since: Option<u64>,
    /// The last sample was elsewhere: an interrupt handler may have been caught once.
    has_strayed: bool,
}

impl From<&Sample> for Streak {
    fn from(first: &Sample) -> Self {
        let masked_since = (!first.interrupts_on).then_some(first.now);
        Self { anchor: *first, clock_loops: 0, stands_still: 0, masked_since, has_strayed: false }
    }
}

impl Streak {
    /// Returns whether a sample belongs to it. One that shows other code may be an interrupt handler's, and is forgiven
    /// once; not before the first sign, since the first sample may have been the handler's (`is_diagnosed`: there were
    /// enough).
    pub(crate) fn takes(&mut self, sample: &Sample, is_diagnosed: bool) -> bool {
        match sample.sign_after(&self.anchor) {
            Sign::Alive => return false,
            Sign::Elsewhere => {
                let is_forgiven = !self.has_strayed && (is_diagnosed || self.has_signs());
                self.has_strayed = true;
                return is_forgiven;
            }
            Sign::ClockLoop => self.clock_loops += 1,
            Sign::StandsStill => self.stands_still += 1,
            Sign::Narrow => {}
        }
        self.has_strayed = false;
        if sample.interrupts_on {
            self.masked_since = None;
        }
        self.anchor.registers = sample.registers;
        true
    }

    fn has_signs(&self) -> bool {
        self.clock_loops > 0 || self.stands_still > 0
    }
}

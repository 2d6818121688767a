// SPDX-License-Identifier: MIT OR Apache-2.0
//! The controls of a VMCS, resolved from what is asked for and what the CPU allows.

use crate::capability::{Allowed, Capabilities};
use crate::control::{Control, Controls, REQUIREMENTS, Word};
use crate::msr;
use crate::unusable::Unusable;

/// The controls that are asked for. Any other is 0, unless the CPU requires it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Must be 1, or VMX cannot be used.
    pub needed: Controls,
    /// 1 where the CPU allows it, and what it depends on.
    pub wanted: Controls,
    /// Must be 0, or VMX cannot be used.
    pub forbidden: Controls,
}

impl Request {
    /// Resolves the controls for a CPU.
    ///
    /// # Errors
    /// [`Unusable`] names the first control that stands in the way.
    pub fn resolve(&self, capabilities: &Capabilities) -> Result<Controls, Unusable> {
        let mut resolved = Controls::NONE;
        for word in Word::ALL {
            resolved = resolved.with_word(word, self.word(word, capabilities.allowed(word))?);
        }
        let resolved = self.without_orphans(resolved, capabilities)?;
        Ok(without_idle_words(resolved))
    }

    fn word(&self, word: Word, allowed: Allowed) -> Result<u64, Unusable> {
        let [needed, wanted, forbidden] = [self.needed, self.wanted, self.forbidden].map(|set| set.word(word));
        let msr = stated_by(word, allowed);
        if let Some(control) = first(word, needed & !allowed.may) {
            return Err(Unusable::Missing { control, msr });
        }
        let value = allowed.must | needed | wanted & allowed.may & !forbidden;
        match first(word, value & forbidden) {
            Some(control) => Err(Unusable::Forced { control, msr }),
            None => Ok(value),
        }
    }

    /// Clears wanted controls that depend on one which is 0. Each pass clears at least one, or ends.
    fn without_orphans(&self, resolved: Controls, capabilities: &Capabilities) -> Result<Controls, Unusable> {
        let mut resolved = resolved;
        for _ in REQUIREMENTS {
            let orphan = REQUIREMENTS.iter().find(|it| resolved.has(it.control) && !resolved.has(it.requires));
            let Some(orphan) = orphan else { break };
            let (control, word) = (orphan.control, orphan.requires.word());
            let must = capabilities.allowed(control.word()).must;
            if self.needed.has(control) || must & control.bit() != 0 {
                let msr = stated_by(word, capabilities.allowed(word));
                return Err(Unusable::Missing { control: orphan.requires, msr });
            }
            resolved = resolved.without(control);
        }
        Ok(resolved)
    }
}

/// A word that no control activates is not checked, but it is clearer as 0.
fn without_idle_words(resolved: Controls) -> Controls {
    Word::ALL.iter().fold(resolved, |controls, &word| match word.activated_by() {
        Some(activator) if !controls.has(activator) => controls.with_word(word, 0),
        _ => controls,
    })
}

/// The MSR that states a word's settings; for a word that cannot be activated, the one that states that.
fn stated_by(word: Word, allowed: Allowed) -> u32 {
    match word {
        Word::Secondary | Word::Tertiary if allowed.msr == 0 => msr::PROCBASED_CTLS,
        _ => allowed.msr,
    }
}

/// The lowest of these bits that has a name.
fn first(word: Word, bits: u64) -> Option<Control> {
    Control::ALL.iter().copied().find(|control| control.word() == word && control.bit() & bits != 0)
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;

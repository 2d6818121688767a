// SPDX-License-Identifier: MIT OR Apache-2.0
//! Controls of VMX by their names, and sets of them (sections 25.6 to 25.8).

mod list;
mod requirements;
mod word;

pub use list::Control;
pub use requirements::{REQUIREMENTS, Requirement};
pub use word::Word;

impl Word {
    /// The control that activates this word, where one does. Without it the CPU takes the word for 0.
    pub const fn activated_by(self) -> Option<Control> {
        match self {
            Self::Secondary => Some(Control::ActivateSecondaryControls),
            Self::Tertiary => Some(Control::ActivateTertiaryControls),
            Self::Pin | Self::Primary | Self::Exit | Self::Entry => None,
        }
    }
}

/// The six words of controls. Bits without a name are kept: CPUs require some of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Controls([u64; 6]);

impl Controls {
    /// No control.
    pub const NONE: Self = Self([0; 6]);

    /// A set of controls, and of those that activate their words.
    pub const fn of(controls: &[Control]) -> Self {
        let mut set = Self::NONE;
        let mut at = 0;
        while at < controls.len() {
            set = set.with(controls[at]);
            at += 1;
        }
        set
    }

    /// These, one more, and the control that activates its word.
    pub const fn with(self, control: Control) -> Self {
        let mut words = self.0;
        words[control.word() as usize] |= control.bit();
        if let Some(activator) = control.word().activated_by() {
            words[activator.word() as usize] |= activator.bit();
        }
        Self(words)
    }

    /// These without one.
    pub const fn without(self, control: Control) -> Self {
        let mut words = self.0;
        words[control.word() as usize] &= !control.bit();
        Self(words)
    }

    /// Returns whether a control is among them, and in force: its word is activated.
    pub const fn has(self, control: Control) -> bool {
        let is_active = match control.word().activated_by() {
            Some(activator) => self.0[activator.word() as usize] & activator.bit() != 0,
            None => true,
        };
        is_active && self.0[control.word() as usize] & control.bit() != 0
    }

    /// A word, as the VMCS holds it.
    pub const fn word(self, word: Word) -> u64 {
        self.0[word as usize]
    }

    /// These with another word.
    pub const fn with_word(self, word: Word, value: u64) -> Self {
        let mut words = self.0;
        words[word as usize] = value;
        Self(words)
    }
}

#[cfg(test)]
#[path = "control_tests.rs"]
mod tests;

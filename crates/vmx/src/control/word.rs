// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words of controls.

/// A word of controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Pin-based VM-execution controls (section 25.6.1).
    Pin,
    /// Primary processor-based VM-execution controls (section 25.6.2).
    Primary,
    /// Secondary processor-based VM-execution controls (section 25.6.2).
    Secondary,
    /// Tertiary processor-based VM-execution controls (section 25.6.2): 64 bits.
    Tertiary,
    /// Primary VM-exit controls (section 25.7.1).
    Exit,
    /// VM-entry controls (section 25.8.1).
    Entry,
}

impl Word {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 6] = [Self::Pin, Self::Primary, Self::Secondary, Self::Tertiary, Self::Exit, Self::Entry];

    /// The manual's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pin => "pin-based VM-execution controls",
            Self::Primary => "primary processor-based VM-execution controls",
            Self::Secondary => "secondary processor-based VM-execution controls",
            Self::Tertiary => "tertiary processor-based VM-execution controls",
            Self::Exit => "VM-exit controls",
            Self::Entry => "VM-entry controls",
        }
    }
}

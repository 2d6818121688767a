// SPDX-License-Identifier: MIT OR Apache-2.0
//! A rule of a VM entry.

use core::fmt;

/// A rule that a VM entry checks, and that a state violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The section of the manual.
    pub section: &'static str,
    /// The register, field or control.
    pub item: &'static str,
    /// The violation, as a predicate of the item.
    pub violated: &'static str,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} (SDM vol. 3, section {})", self.item, self.violated, self.section)
    }
}

/// An item, what is wrong with it, and whether it is.
pub(super) type Check = (&'static str, &'static str, bool);

/// The first of some checks that fails.
pub(super) fn first<const N: usize>(section: &'static str, checks: [Check; N]) -> Result<(), Rule> {
    match checks.into_iter().find(|(.., fails)| *fails) {
        Some((item, violated, _)) => Err(Rule { section, item, violated }),
        None => Ok(()),
    }
}

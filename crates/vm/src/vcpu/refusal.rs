// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reason why a CPU has refused to enter a guest.

use core::fmt;

/// The reason why a CPU has refused to enter a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The register or field; may be empty.
    pub item: &'static str,
    /// The violation, as a predicate of the item.
    pub violated: &'static str,
    /// The section of the manual with the rule; may be empty.
    pub section: &'static str,
}

impl From<&'static str> for Refusal {
    fn from(violated: &'static str) -> Self {
        Self { item: "", violated, section: "" }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let space = if self.item.is_empty() { "" } else { " " };
        write!(f, "{}{space}{}", self.item, self.violated)?;
        if self.section.is_empty() { Ok(()) } else { write!(f, " (section {})", self.section) }
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn a_refusal_names_the_item_and_the_section_where_there_are_some() {
        assert_eq!(Refusal::from("its ASID is 0").to_string(), "its ASID is 0");
        let rule = Refusal { item: "CR4", violated: "has a bit that must be 0", section: "27.3.1.1" };
        assert_eq!(rule.to_string(), "CR4 has a bit that must be 0 (section 27.3.1.1)");
    }
}

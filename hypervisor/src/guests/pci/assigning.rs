// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guests whose configurations name the host's PCI functions, and the isolation groups of these functions.

use alloc::string::String;
use alloc::vec::Vec;

use pci::groups::Member;
use pci::{Bdf, Groups, Selector};

use super::{SURVEY, Survey};
use crate::guests::guest::GUESTS;

/// Returns the first guest whose configuration names a function.
pub fn owner(place: Bdf) -> Option<String> {
    let guests = &GUESTS.get()?.all;
    let survey = SURVEY.lock();
    let names = |selector: &str| {
        let selected = Selector::parse(selector).ok().and_then(|selector| selector.select(&survey.found).ok());
        selected.is_some_and(|function| function.place == place)
    };
    let is_for = |functions: &[bundle::AssignedConfig]| functions.iter().any(|function| names(&function.selector));
    guests.iter().find(|guest| is_for(&guest.config.functions)).map(|guest| guest.config.name.clone())
}

/// Returns the number of a function's isolation group; `None` for a bridge, for one that is not known or whose bridges
/// are not, and until the survey is complete.
pub fn group(place: Bdf) -> Option<u32> {
    SURVEY.lock().groups()?.number_of(place)
}

impl Survey {
    /// The isolation groups of the functions that are kept, formed when they are first asked for; `None` until the
    /// survey is complete.
    fn groups(&mut self) -> Option<&Groups> {
        if !self.is_complete() {
            return None;
        }
        if self.groups.is_none() {
            let members: Vec<Member> =
                self.found.iter().map(|function| Member::read(&mut self.space, function)).collect();
            self.groups = Some(Groups::new(&members, &self.roots));
        }
        self.groups.as_ref()
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The virtual functions that the host's PCI functions state they can have. None is enabled: a guest that has a
//! function does not see the capability.

use alloc::string::ToString as _;
use alloc::vec::Vec;

use pci::Bdf;
use pci::capability::Capability;
use pci::sriov::VirtualFunctions;
use wire::PciVirtualFunctions;

use super::{SURVEY, Survey};

/// Returns the virtual functions of a function; `None` if it can have none, and until the survey is complete.
pub fn describe(place: Bdf) -> Option<PciVirtualFunctions> {
    let mut survey = SURVEY.lock();
    let all = survey.virtual_functions()?;
    all.iter().find(|(of, _)| *of == place).map(|(_, described)| described.clone())
}

impl Survey {
    /// Those of the functions that are kept, read when they are first asked for.
    fn virtual_functions(&mut self) -> Option<&[(Bdf, PciVirtualFunctions)]> {
        if !self.is_complete() {
            return None;
        }
        if self.virtual_functions.is_none() {
            let all: Vec<_> = (0..self.found.len()).filter_map(|index| self.read_virtual(index)).collect();
            self.virtual_functions = Some(all);
        }
        self.virtual_functions.as_deref()
    }

    fn read_virtual(&mut self, index: usize) -> Option<(Bdf, PciVirtualFunctions)> {
        let function = self.found.get(index)?;
        let place = function.place;
        // Only PCI Express functions have extended capabilities.
        function.capabilities.iter().find(|capability| capability.id == Capability::EXPRESS)?;
        let read = VirtualFunctions::read(&mut self.space, place)?;
        let total = read.map_or(0, |read| read.total);
        let places = read.and_then(|read| read.places(place, &self.found));
        let described = match places {
            Ok(places) => {
                let number = |place: &Bdf| (place.segment, place.bus, place.device(), place.function());
                let places = [places.start(), places.end()].map(number);
                PciVirtualFunctions { total, places: Some(places), problem: None }
            }
            Err(problem) => PciVirtualFunctions { total, places: None, problem: Some(problem.to_string()) },
        };
        Some((place, described))
    }
}

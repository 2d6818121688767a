// SPDX-License-Identifier: MIT OR Apache-2.0
//! The virtual functions that the host's PCI functions state they can have, and those that are enabled: functions like
//! others, which are found, listed, grouped and assigned as those are.

use alloc::string::ToString as _;
use alloc::vec::Vec;

use pci::capability::Capability;
use pci::sriov::enabling::{self, Sizes};
use pci::sriov::{Unusable, VirtualFunctions};
use pci::{Bdf, function};
use wire::PciVirtualFunctions;

use super::{SURVEY, Survey, keep};

/// Returns the virtual functions of a function; `None` if it can have none, and until the survey is complete.
pub fn describe(place: Bdf) -> Option<PciVirtualFunctions> {
    let mut survey = SURVEY.lock();
    let all = survey.virtual_functions()?;
    all.iter().find(|(of, _)| *of == place).map(|(_, described)| described.clone())
}

/// The physical functions with virtual ones that are enabled.
pub fn physical_functions() -> Vec<Bdf> {
    let survey = SURVEY.lock();
    let mut all: Vec<Bdf> = survey.space.functions().iter().map(|function| function.physical).collect();
    all.dedup();
    all
}

/// The virtual functions of a physical one that are enabled.
pub fn enabled(physical: Bdf) -> Vec<Bdf> {
    SURVEY.lock().space.of(physical).collect()
}

/// Returns whether a function is a virtual one.
pub fn is_virtual(place: Bdf) -> bool {
    SURVEY.lock().space.is_virtual(place)
}

/// Reads what a function states of its virtual ones; `None` if it has none.
///
/// # Errors
/// [`Unusable`]: none can be enabled.
pub fn read(physical: Bdf) -> Option<Result<VirtualFunctions, Unusable>> {
    let Survey { space, found, .. } = &mut *SURVEY.lock();
    let read = VirtualFunctions::read(space, physical)?;
    Some(read.and_then(|read| VirtualFunctions::check_window(space, physical, found).map(|()| read)))
}

/// Enables virtual functions of a function; `taken`: its own ranges.
///
/// # Errors
/// [`Unusable`]; none is enabled then.
pub fn enable(physical: Bdf, number: u8, taken: &[(u64, u64)]) -> Result<Sizes, Unusable> {
    let Survey { space, found, .. } = &mut *SURVEY.lock();
    VirtualFunctions::enable(space, physical, number, found, taken)
}

/// Goes on with virtual functions that the image before has enabled, with ranges of these lengths.
///
/// # Errors
/// [`Unusable`]: they are not enabled so.
pub fn adopt(physical: Bdf, number: u8, sizes: &Sizes) -> Result<(), Unusable> {
    let Survey { space, found, .. } = &mut *SURVEY.lock();
    VirtualFunctions::adopt(space, physical, number, found, sizes)
}

/// Finds the virtual functions of a physical one, which are enabled. Returns how many answer.
pub fn find(physical: Bdf) -> usize {
    let mut survey = SURVEY.lock();
    let Survey { space, found, count, .. } = &mut *survey;
    let places: Vec<Bdf> = space.of(physical).collect();
    let mut answering = 0;
    for place in places {
        let Some(one) = function::find(space, place) else { continue };
        answering += 1;
        keep(one, found, count);
    }
    survey.regroup();
    answering
}

/// Disables the virtual functions of a function.
pub fn disable(physical: Bdf) {
    let mut survey = SURVEY.lock();
    let Survey { space, found, count, .. } = &mut *survey;
    let gone: Vec<Bdf> = space.of(physical).collect();
    enabling::disable(space, physical);
    let before = found.len();
    found.retain(|function| !gone.contains(&function.place));
    *count -= (before - found.len()) as u32;
    survey.regroup();
}

impl Survey {
    /// Groups, and what is known of virtual functions, are formed again when they are next asked for.
    fn regroup(&mut self) {
        (self.groups, self.virtual_functions) = (None, None);
    }

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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The isolation groups of the host's PCI functions.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use pci::groups::Member;
use pci::{Bdf, Groups};

use super::{SURVEY, Survey};
use crate::kernel::iommu::guests as iommu;

/// Returns the number of a function's isolation group; `None` for a bridge, for one that is not known or has unknown
/// bridges, and until the survey is complete.
pub fn group(place: Bdf) -> Option<u32> {
    SURVEY.lock().groups()?.number_of(place)
}

/// Checks that a function can belong to a guest of this name: none of its isolation group belongs to another.
///
/// # Errors
/// The functions that do.
pub fn check<'a>(place: Bdf, guest: &'a str, owner_of: impl Fn(Bdf) -> Option<&'a str>) -> Result<(), String> {
    let mut survey = SURVEY.lock();
    let groups = survey.groups().ok_or("its isolation group is not known yet")?;
    groups.check(place, &guest, owner_of).map_err(|refusal| refusal.to_string())
}

impl Survey {
    /// The isolation groups of the functions that are kept, formed when they are first asked for; `None` until the
    /// survey is complete.
    pub(super) fn groups(&mut self) -> Option<&Groups> {
        if !self.is_complete() {
            return None;
        }
        if self.groups.is_none() {
            let mut members: Vec<Member> =
                self.found.iter().map(|function| Member::read(&mut self.space, function)).collect();
            self.isolate(&mut members);
            self.groups = Some(Groups::new(&members, &self.roots));
        }
        self.groups.as_ref()
    }

    /// Ports, and devices of several functions, pass transfers from one function to another only through the IOMMU,
    /// where they can.
    fn isolate(&mut self, members: &mut [Member]) {
        if iommu::is_ready() {
            members.iter_mut().filter(|member| member.decides()).for_each(|member| {
                member.enable_isolation(&mut self.space);
            });
        }
    }
}

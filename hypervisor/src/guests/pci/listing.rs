// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's PCI functions as the control channel lists them.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use pci::bar::Space as RangeSpace;
use pci::{Bdf, Cost, Filter, Function, Kind};
use wire::{PciCost, PciFunction, PciPolicy, PciRange, PciSurvey, ReplyBody, page};

use super::{SURVEY, assignments, groups, sriov};
use crate::kernel::iommu::guests as iommu;
use crate::kernel::platform::options;

/// The problem of a function that was stopped.
const STOPPED: &str = "it is stopped: its IOMMU has refused too many of its requests; reset the guest that has it";
/// The most functions collected for one page; a frame holds fewer.
const PAGE_FUNCTIONS: usize = 64;

/// A page of the functions found so far. `holder` is the guest that has a function.
pub fn list(from_index: u32, holder: impl Fn(Bdf) -> Option<String>) -> ReplyBody {
    let (survey, found, kept) = snapshot(from_index as usize);
    let functions = page::fill(found.iter().map(|function| describe(function, &holder)), PAGE_FUNCTIONS);
    let next = from_index as usize + functions.len();
    let next_index = (next < kept).then_some(next as u32);
    ReplyBody::PciFunctions { survey, functions, next_index }
}

/// The progress of the survey, as many functions from an index on as a page may hold, and the number of all. Others may
/// use the survey while these are described.
fn snapshot(from_index: usize) -> (PciSurvey, Vec<Function>, usize) {
    let survey = SURVEY.lock();
    let found = survey.found.iter().skip(from_index).take(PAGE_FUNCTIONS).cloned().collect();
    let policy = match options().map(|options| &options.pci) {
        Some(Filter::All) => PciPolicy::All,
        Some(Filter::Allow(_)) => PciPolicy::Allow,
        Some(Filter::Lazy) | None => PciPolicy::Lazy,
    };
    let progress = PciSurvey {
        policy,
        is_complete: survey.is_complete(),
        functions: survey.count,
        before_guests: survey.before_guests.map(cost),
        total: cost(survey.total()),
    };
    (progress, found, survey.found.len())
}

fn cost(Cost { accesses, ticks }: Cost) -> PciCost {
    PciCost { accesses, ticks }
}

fn describe(function: &Function, holder: impl Fn(Bdf) -> Option<String>) -> PciFunction {
    let (place, identity) = (function.place, function.identity);
    let (bars, bus_behind) = match &function.kind {
        Kind::Endpoint { bars } => (bars.as_slice(), None),
        Kind::Bridge { secondary, .. } => (&[][..], Some(*secondary)),
        Kind::Other(_) => (&[][..], None),
    };
    let ranges = bars.iter();
    let ranges = ranges.map(|bar| PciRange { is_ports: bar.space == RangeSpace::Ports, address: bar.address });
    let problems = function.problems.iter().map(|problem| problem.to_string());
    let stopped = iommu::is_stopped(place).then(|| STOPPED.to_string());
    PciFunction {
        place: (place.segment, place.bus, place.device(), place.function()),
        vendor: identity.vendor,
        device: identity.device,
        class: (identity.class, identity.subclass, identity.interface),
        revision: identity.revision,
        bus_behind,
        ranges: ranges.collect(),
        capabilities: function.capabilities.iter().map(|capability| capability.id).collect(),
        problems: problems.chain(stopped).collect(),
        cost: cost(function.cost),
        owner: holder(place).or_else(|| assignments::owner(place)),
        group: groups::group(place),
        virtual_functions: sriov::describe(place),
    }
}

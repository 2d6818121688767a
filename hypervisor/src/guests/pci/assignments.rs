// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guests that functions are assigned to: those with configurations that name them, and the operator's changes
//! since. A guest that starts takes its functions from here; the functions of a running guest are not changed here. A
//! change is planned, and made once the guest that runs, if it does, has the function.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use bundle::{AssignedConfig, limits};
use handover::layout::{self, MAX_ASSIGNMENTS, assignment_flag, padded, unpadded};
use pci::assignments::{Limits, MAX_CHANGES};
use pci::capability::Capability;
use pci::{AssignError, Assignment, Bdf, Changes, Selector, reset};
use spin::Mutex;

use super::{SURVEY, Survey, probe_everything};
use crate::guests::guest::Guest;
use crate::guests::slots::GUESTS;
use crate::kernel::inherited;
use crate::kernel::iommu::guests as iommu;

/// The operator's changes. Only the control channel writes them. Locked after the survey.
static CHANGES: Mutex<Changes> = Mutex::new(Changes::new());

/// The reason for which a function without MSI and MSI-X is refused.
pub const NO_INTERRUPT: &str = "it has neither MSI nor MSI-X, and the input of its INTx line is not known: `gsi` of the \
     function in host.toml states it";

const _: () = assert!(MAX_CHANGES == MAX_ASSIGNMENTS);

/// The reason why an assignment is not changed; nothing has changed.
pub enum Problem {
    /// The text names no function of the machine.
    NoFunction(String),
    /// Another assignment is in the way.
    Refused(AssignError),
    /// It is released from a guest that still has it.
    Held {
        /// The function.
        place: Bdf,
        /// The guest.
        holder: String,
    },
    /// No guest can have the function.
    Unfit {
        /// The function.
        place: Bdf,
        /// The missing property.
        reason: String,
        /// The remedy.
        hint: &'static str,
    },
}

impl From<AssignError> for Problem {
    fn from(error: AssignError) -> Self {
        Self::Refused(error)
    }
}

/// An assignment that is possible, and has not been made.
pub struct Planned {
    /// The function.
    pub place: Bdf,
    /// True if the guest gets it even where nothing can reset it.
    pub without_reset: bool,
    changes: Changes,
}

impl Planned {
    /// Makes it.
    pub fn commit(self) {
        *CHANGES.lock() = self.changes;
    }
}

/// Plans to assign a function to a guest. `holder` is the guest that has a function.
///
/// # Errors
/// [`Problem`].
pub fn plan(
    function: &str,
    guest: &Guest,
    without_reset: bool,
    holder: impl Fn(Bdf) -> Option<Arc<Guest>>,
) -> Result<Planned, Problem> {
    // As the guest's start does: the survey need not wait for an idle CPU.
    probe_everything();
    let mut survey = SURVEY.lock();
    let place = survey.select(parse(function)?)?;
    let configured = survey.configured();
    let mut changes = CHANGES.lock().clone();
    let detached = || unfit(place, "its isolation group is not known", "leave `pci=allow:` off the command line");
    let groups = survey.groups().ok_or_else(detached)?;
    let limits = Limits { configured: &configured, groups, most: limits::FUNCTIONS };
    let name = &guest.config.name;
    changes.assign(Assignment { place, guest: name.clone(), without_reset }, &limits)?;
    let its = |one: &&Assignment| (one.place, &one.guest) == (place, name);
    let without_reset = changes.all(&configured).find(its).is_some_and(|one| one.without_reset);
    if let Some(holder) = holder(place) {
        return Err(Problem::Held { place, holder: holder.config.name.clone() });
    }
    // Last of all: it reads registers, and here no guest has the function.
    survey.check_fit(place, without_reset)?;
    drop(survey);
    iommu::check(place).map_err(|problem| unfit(place, &problem, "`baton pci` ends with the machine's IOMMUs"))?;
    Ok(Planned { place, without_reset, changes })
}

/// Returns the function that is to be released.
///
/// # Errors
/// [`Problem`].
pub fn place_of(function: &str) -> Result<Bdf, Problem> {
    probe_everything();
    match parse(function)? {
        // One that is not there any more can be released.
        Selector::Place(place) => Ok(place),
        selector => SURVEY.lock().select(selector),
    }
}

/// Returns the guest that a function is assigned to: the named one, or the only one.
///
/// # Errors
/// [`Problem`].
pub fn owner_of(place: Bdf, guest: Option<&str>) -> Result<String, Problem> {
    let configured = SURVEY.lock().configured();
    Ok(CHANGES.lock().owner(place, guest, &configured)?)
}

/// Releases a function from a guest, if it is assigned to that.
///
/// # Errors
/// [`Problem`].
pub fn release(place: Bdf, guest: &Guest) -> Result<(), Problem> {
    let configured = SURVEY.lock().configured();
    CHANGES.lock().release(place, &guest.config.name, &configured)?;
    Ok(())
}

/// The global system interrupt of a function's line, where one is known that the function needs.
pub fn gsi_of(place: Bdf) -> Option<u32> {
    SURVEY.lock().gsi_of(place)
}

/// How many virtual functions of a function a guest may enable.
pub fn approved_virtual_functions(place: Bdf, guest: &Guest) -> u8 {
    SURVEY.lock().approved_virtual_functions(place, guest)
}

/// Returns whether a guest neither runs nor is about to.
pub fn has_stopped(guest: &Guest) -> bool {
    guest.status().state.has_ended() && !guest.has_orders()
}

/// Returns the guest that a function is assigned to; of several, the first one that runs, or else the first one.
pub fn owner(place: Bdf) -> Option<String> {
    let survey = SURVEY.lock();
    let (configured, changes) = (survey.configured(), CHANGES.lock());
    let its = || changes.all(&configured).filter(|one| one.place == place).map(|one| &one.guest);
    let runs = |name: &&String| GUESTS.named(name).map(|guest| !has_stopped(&guest));
    its().find(|name| runs(name) == Some(true)).or_else(|| its().next()).cloned()
}

/// Returns the functions that a guest gets when it starts: those of its configuration, without those released; then
/// those assigned, in that order.
pub fn functions_of(guest: &Guest) -> Vec<AssignedConfig> {
    let name = &guest.config.name;
    // Most guests have none, and need no survey.
    if guest.config.functions.is_empty() && !CHANGES.lock().assigned().iter().any(|one| one.guest == *name) {
        return Vec::new();
    }
    probe_everything();
    let survey = SURVEY.lock();
    let changes = CHANGES.lock();
    // One that is not there stays, and is refused with the reason.
    let is_kept =
        |function: &&AssignedConfig| survey.place_of(&function.selector).is_none_or(|place| changes.keeps(place, name));
    let kept = guest.config.functions.iter().filter(is_kept).cloned();
    let added = changes.assigned().iter().filter(|one| one.guest == *name);
    let added = added.map(|one| AssignedConfig {
        selector: one.place.to_string(),
        without_reset: one.without_reset,
        gsi: None,
        virtual_functions: survey.approved_virtual_functions(one.place, guest),
    });
    kept.chain(added).collect()
}

/// Takes over what was changed under the images before. Before any guest starts.
pub fn adopt() {
    let Some(record) = inherited::record() else { return };
    let mut changes = CHANGES.lock();
    for one in record.assignments.iter() {
        let place = Bdf::of_requester(one.segment.get(), one.requester.get());
        let (guest, flags) = (unpadded(&one.guest).to_string(), one.flags.get());
        if flags & assignment_flag::IS_ASSIGNED == 0 {
            changes.adopt_released(place, guest);
        } else {
            let without_reset = flags & assignment_flag::WITHOUT_RESET != 0;
            changes.adopt_assigned(Assignment { place, guest, without_reset });
        }
    }
}

/// The changes as a record has them.
pub fn section() -> Vec<layout::Assignment> {
    let one = |place: Bdf, guest: &str, flags: u32| layout::Assignment {
        guest: padded(guest),
        segment: place.segment.into(),
        requester: place.requester().into(),
        flags: flags.into(),
    };
    let flags = |assignment: &Assignment| {
        let without_reset = if assignment.without_reset { assignment_flag::WITHOUT_RESET } else { 0 };
        assignment_flag::IS_ASSIGNED | without_reset
    };
    let changes = CHANGES.lock();
    let assigned = changes.assigned().iter().map(|assigned| one(assigned.place, &assigned.guest, flags(assigned)));
    let released = changes.released().iter().map(|(place, guest)| one(*place, guest, 0));
    assigned.chain(released).collect()
}

/// Logs changes of the operator's that a reader of this hand-over version does not have.
pub fn warn_if_dropped(version: u32) {
    let count = CHANGES.lock().count();
    if version < layout::Kind::Assignments.since() && count > 0 {
        log::warn!(
            "hand-over version {version} has no PCI assignments: the next image has those of host.toml, without \
             {count} changes of the operator's"
        );
    }
}

impl Survey {
    /// The functions that guests' configurations name, as far as they are there.
    fn configured(&self) -> Vec<Assignment> {
        let of = |guest: Arc<Guest>| {
            let assignment = |function: &AssignedConfig| {
                let (guest, without_reset) = (guest.config.name.clone(), function.without_reset);
                Some(Assignment { place: self.place_of(&function.selector)?, guest, without_reset })
            };
            guest.config.functions.iter().filter_map(assignment).collect::<Vec<_>>()
        };
        GUESTS.all().flat_map(of).collect()
    }

    fn gsi_of(&self, place: Bdf) -> Option<u32> {
        let its = |function: &AssignedConfig| function.gsi.filter(|_| self.place_of(&function.selector) == Some(place));
        GUESTS.all().find_map(|guest| guest.config.functions.iter().find_map(its))
    }

    fn approved_virtual_functions(&self, place: Bdf, guest: &Guest) -> u8 {
        guest.config.approved_virtual_functions(|selector| self.place_of(selector) == Some(place))
    }

    fn place_of(&self, selector: &str) -> Option<Bdf> {
        self.select(Selector::parse(selector).ok()?).ok()
    }

    fn select(&self, selector: Selector) -> Result<Bdf, Problem> {
        let selected = selector.select(&self.found).map(|function| function.place);
        selected.map_err(|error| Problem::NoFunction(error.to_string()))
    }

    /// Checks what a guest's start would find missing.
    fn check_fit(&mut self, place: Bdf, without_reset: bool) -> Result<(), Problem> {
        let function = self.found.iter().find(|function| function.place == place);
        let capabilities: Vec<Capability> = function.into_iter().flat_map(|found| found.capabilities.clone()).collect();
        let has_messages = capabilities.iter().any(|one| [Capability::MSI, Capability::MSI_X].contains(&one.id));
        if !has_messages && self.gsi_of(place).is_none() {
            return Err(unfit(place, NO_INTERRUPT, "choose another function"));
        }
        if !without_reset && reset::way(&mut self.space, place, &capabilities).is_none() {
            let hint = "`--reset none` assigns it all the same: only where one guest alone ever has it";
            return Err(unfit(place, "it cannot be reset", hint));
        }
        Ok(())
    }
}

fn parse(function: &str) -> Result<Selector, Problem> {
    let shown = wire::bounded(function, pci::selector::MAX_SELECTOR_BYTES);
    Selector::parse(function).map_err(|error| Problem::NoFunction(format!("{shown:?} {error}")))
}

fn unfit(place: Bdf, reason: &str, hint: &'static str) -> Problem {
    Problem::Unfit { place, reason: reason.into(), hint }
}

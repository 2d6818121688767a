// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests that change which guests have PCI functions: from a guest's next start on, or while it runs. Two requests
//! are answered later: one that adds a function, once its reset is done; one that removes a function, once it is free.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use pci::Bdf;
use wire::{EventKind, PciProgress, Refusal, RefusalCode, ReplyBody};

use super::guest_lines::{Answer, Asked};
use super::named::find;
use crate::arch::{cpu, timer};
use crate::guests::assigned;
use crate::guests::assigned::plugging::{self, Arrival, Departure};
use crate::guests::events::record;
use crate::guests::guest::Guest;
use crate::guests::instance::Instance;
use crate::guests::pci::assignments::{self, Planned, Problem};
use crate::guests::slots::GUESTS;

/// The time after which it is checked again whether a function that leaves is free.
const POLL_US: u64 = 500;

/// Functions that come to guests that run, or leave them.
#[derive(Default)]
pub struct FunctionOrders {
    /// One at a time: each assignment is planned beside those that are there.
    arriving: Option<Arriving>,
    /// Each with the request that is answered then, if one waits.
    leaving: Vec<(Option<Asked>, Departure)>,
}

/// A function that is being reset for a guest that runs.
struct Arriving {
    request: Asked,
    arrival: Arrival,
    planned: Planned,
}

impl FunctionOrders {
    /// Assigns a function to a guest, which has it at once if it runs. `None`: that is under way, and [`Self::poll`]
    /// answers.
    pub fn assign(
        &mut self,
        request: Asked,
        function: &str,
        guest: &str,
        without_reset: bool,
    ) -> Option<Result<ReplyBody, Refusal>> {
        self.begin_assign(request, function, guest, without_reset).transpose()
    }

    fn begin_assign(
        &mut self,
        request: Asked,
        function: &str,
        guest: &str,
        without_reset: bool,
    ) -> Result<Option<ReplyBody>, Refusal> {
        self.check_idle()?;
        let guest = find(guest)?;
        let run = run_of(&guest)?;
        let planned = assignments::plan(function, &guest, without_reset, assigned::holder).map_err(refused)?;
        let place = planned.place;
        if let Some(run) = run {
            let begun = Arrival::begin(&run, place, planned.without_reset);
            let arrival = begun.map_err(|reason| failed(place, &reason, &restart_hint(&guest)))?;
            self.arriving = Some(Arriving { request, arrival, planned });
            return Ok(None);
        }
        log::info!("guest {}: is assigned PCI function {place}, from its next start on", guest.config.name);
        planned.commit();
        Ok(Some(changed(place, &guest, PciProgress::NextStart)))
    }

    /// One that comes changes the assignments.
    fn check_idle(&self) -> Result<(), Refusal> {
        let Some(Arriving { arrival, .. }) = &self.arriving else { return Ok(()) };
        let reason =
            format!("PCI function {} is being reset for guest '{}'", arrival.place(), arrival.guest().config.name);
        Err(refusal(RefusalCode::WrongState, &reason, "ask again in a moment"))
    }

    /// A function's reset has ended.
    pub fn note_reset(&mut self, place: Bdf, result: Result<(), String>) -> Option<Answer> {
        match self.arriving.take_if(|arriving| arriving.arrival.place() == place) {
            Some(arriving) => Some(arrive(arriving, result)),
            None => {
                // Its guest has ended, or it was stopped meanwhile.
                result.unwrap_or_else(|problem| log::warn!("PCI function {place}: its reset failed: {problem}"));
                None
            }
        }
    }

    /// Releases a function from a guest: the named one, or the only one that is assigned it. One that runs is asked to
    /// eject it, or it is taken by force. `None`: that is under way, and [`Self::poll`] answers.
    pub fn release(
        &mut self,
        request: Asked,
        function: &str,
        guest: Option<&str>,
        is_forced: bool,
    ) -> Option<Result<ReplyBody, Refusal>> {
        self.begin_release(request, function, guest, is_forced).transpose()
    }

    fn begin_release(
        &mut self,
        request: Asked,
        function: &str,
        guest: Option<&str>,
        is_forced: bool,
    ) -> Result<Option<ReplyBody>, Refusal> {
        self.check_idle()?;
        let named = guest.map(find).transpose()?;
        let name = named.as_ref().map(|guest| guest.config.name.as_str());
        let place = assignments::place_of(function).map_err(refused)?;
        let holder = assigned::holder(place).filter(|holder| name.is_none_or(|name| name == holder.config.name));
        let is_held = holder.is_some();
        let owner = match holder {
            Some(holder) => holder,
            None => find(&assignments::owner_of(place, name).map_err(refused)?)?,
        };
        let run = run_of(&owner)?.filter(|_| is_held);
        if let Some(run) = &run
            && !is_forced
        {
            let hint = format!("`baton pci release {place} {} --force` takes it away", owner.config.name);
            plugging::ask(run, place).map_err(|reason| failed(place, &reason, &hint))?;
        }
        assignments::release(place, &owner).map_err(refused)?;
        match run.map(|run| self.take(request, &run, place, is_forced)) {
            Some(true) => Ok(None),
            Some(false) => Ok(Some(changed(place, &owner, PciProgress::Asked))),
            None => {
                log::info!("guest {}: PCI function {place} is released", owner.config.name);
                Ok(Some(changed(place, &owner, PciProgress::NextStart)))
            }
        }
    }

    /// Takes a function by force, if that is wanted; returns whether it is leaving.
    fn take(&mut self, request: Asked, run: &Arc<Instance>, place: Bdf, is_forced: bool) -> bool {
        let departure = if is_forced { plugging::take_by_force(run, place) } else { None };
        let is_leaving = departure.is_some();
        self.leaving.extend(departure.map(|departure| (Some(request), departure)));
        is_leaving
    }

    /// Takes what guests have ejected. While no update is under way: what the next image was given counts till then.
    pub fn take_ejected(&mut self) {
        let ejected = GUESTS.all().flat_map(|guest| plugging::take_ejected(&guest));
        self.leaving.extend(ejected.map(|departure| (None, departure)));
    }

    /// The answer to a request that has waited, if there is one now.
    pub fn poll(&mut self) -> Option<Answer> {
        if let Some(arriving) = self.arriving.take_if(|arriving| arriving.arrival.is_ready()) {
            return Some(arrive(arriving, Ok(())));
        }
        let at = self.leaving.iter().position(|(_, departure)| plugging::has_left(departure))?;
        let (request, departure) = self.leaving.swap_remove(at);
        let Departure { guest, place, is_forced, .. } = departure;
        record(EventKind::FunctionReleased { place: numbers(place), guest: guest.config.name.clone(), is_forced });
        let asked = request?;
        Some((asked, Ok(changed(place, &guest, PciProgress::Done))))
    }

    /// Returns when to check again, if a function leaves, or one that comes is ready.
    pub fn alarm(&self) -> Option<u64> {
        let is_ready = self.arriving.as_ref().is_some_and(|arriving| arriving.arrival.is_ready());
        (is_ready || !self.leaving.is_empty()).then(|| cpu::tsc() + timer::us_to_ticks(POLL_US))
    }

    /// Returns whether a function comes or leaves: no update begins then.
    pub fn are_busy(&self) -> bool {
        self.arriving.is_some() || !self.leaving.is_empty()
    }
}

/// Gives a function to its guest; `reset` is its reset's result. Returns the answer.
fn arrive(Arriving { request, arrival, planned }: Arriving, reset: Result<(), String>) -> Answer {
    let (place, guest) = (arrival.place(), arrival.guest().clone());
    let result = match arrival.finish(reset) {
        Ok(()) => {
            planned.commit();
            record(EventKind::FunctionAssigned { place: numbers(place), guest: guest.config.name.clone() });
            Ok(changed(place, &guest, PciProgress::Done))
        }
        Err(reason) => Err(failed(place, &reason, &restart_hint(&guest))),
    };
    (request, result)
}

/// The run of a guest; `None` if it has stopped.
///
/// # Errors
/// It is about to run.
fn run_of(guest: &Guest) -> Result<Option<Arc<Instance>>, Refusal> {
    if assignments::has_stopped(guest) {
        return Ok(None);
    }
    let run = guest.run::<Instance>().filter(|run| !run.is_ending());
    run.map(Some).ok_or_else(|| Refusal {
        code: RefusalCode::WrongState,
        reason: format!("guest '{}' is about to start or to stop", guest.config.name),
        hint: "ask again in a moment".to_string(),
    })
}

fn changed(place: Bdf, guest: &Guest, progress: PciProgress) -> ReplyBody {
    ReplyBody::PciAssignment { place: numbers(place), guest: guest.config.name.clone(), progress }
}

fn numbers(place: Bdf) -> (u16, u8, u8, u8) {
    (place.segment, place.bus, place.device(), place.function())
}

fn restart_hint(guest: &Guest) -> String {
    let name = &guest.config.name;
    format!("`baton vm stop {name}`, assign it, and `baton vm start {name}`")
}

fn failed(place: Bdf, reason: &str, hint: &str) -> Refusal {
    refusal(RefusalCode::Failed, &format!("PCI function {place}: {reason}"), hint)
}

fn refused(problem: Problem) -> Refusal {
    match problem {
        Problem::NoFunction(reason) => refusal(RefusalCode::Invalid, &reason, ""),
        Problem::Refused(error) => refusal(RefusalCode::WrongState, &error.to_string(), &error.hint()),
        Problem::Held { place, holder } => {
            let reason = format!("PCI function {place}: guest '{holder}' was asked to eject it, and still has it");
            let hint = format!("wait for it, or `baton pci release {place} {holder} --force`");
            refusal(RefusalCode::WrongState, &reason, &hint)
        }
        Problem::Unfit { place, reason, hint } => {
            refusal(RefusalCode::WrongState, &format!("PCI function {place}: {reason}"), hint)
        }
    }
}

fn refusal(code: RefusalCode, reason: &str, hint: &str) -> Refusal {
    let bounded = |text: &str| wire::bounded(text, wire::MAX_REASON_BYTES).to_string();
    Refusal { code, reason: bounded(reason), hint: bounded(hint) }
}

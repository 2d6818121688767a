// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resets that guests ask for (function level reset): the boot CPU takes their steps between its other work.
//!
//! ```text
//! a vCPU's exit ──► wanted ──► boot CPU: begin ──► a step, when it is due … ──► the function is its guest's again
//!                                                          └── failed ──► stopped: gone for its guest
//! ```
//!
//! A reset that has begun ends in the image that has begun it, since only that one knows what firmware had chosen for
//! the function: an update waits for it, no longer than a reset takes. One that is only wanted by then begins in the
//! next image. A guest's end ends no reset: the next owner of the function finishes it first.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use ::pci::reset::{self, Procedure};
use ::pci::{Bdf, function};
use vm::devices::pci::assigned::Phase;

use super::choosing::guest_of;
use super::functions::Function;
use super::{stopping, under_way, virtual_functions};
use crate::guests::instance::Instance;
use crate::guests::slots::GUESTS;
use crate::guests::{events, pci};

/// Takes the steps that are due; `may_begin`: those that are wanted begin. Returns the results of resets that no guest
/// has asked for, or that lost their guest meanwhile. For the boot CPU.
pub fn step(may_begin: bool) -> Vec<(Bdf, Result<(), String>)> {
    virtual_functions::find_enabled();
    if may_begin && under_way::take_wanted() {
        // They are revoked before the physical function is reset.
        virtual_functions::follow_all();
        wanted().into_iter().for_each(begin);
    }
    under_way::take_steps().into_iter().filter_map(|(place, result)| end(place, result)).collect()
}

/// The functions that are to be reset.
fn wanted() -> Vec<Bdf> {
    let is_wanted = |function: &Function| {
        let mut function = function.lock();
        let is_wanted = function.physical().take_wanted_reset() && function.phase() == Phase::Resetting;
        is_wanted.then(|| function.physical().place())
    };
    let runs = GUESTS.all().filter_map(|guest| guest.run::<Instance>());
    runs.flat_map(|run| run.functions().all().iter().filter_map(is_wanted).collect::<Vec<_>>()).collect()
}

fn begin(place: Bdf) {
    // A survey would miss a function that does not answer.
    pci::probe_everything();
    let procedure = pci::with_config(|config| {
        let capabilities = function::capabilities(config, place);
        let way = reset::way(config, place, &capabilities).ok_or("it cannot be reset any more")?;
        Procedure::begin(config, place, way, &capabilities).map_err(|error| error.to_string())
    });
    match procedure {
        Ok(procedure) => under_way::add(procedure),
        Err(problem) => _ = end(place, Err(problem)),
    }
}

/// A reset has ended: the function is its guest's again, or gone for it. Returned if its guest has not asked for it, or
/// the function was stopped meanwhile.
fn end(place: Bdf, result: Result<(), String>) -> Option<(Bdf, Result<(), String>)> {
    let run = guest_of(place).and_then(|guest| guest.run::<Instance>());
    let is_its = |function: &Function| {
        let mut function = function.lock();
        function.physical().place() == place && function.phase() == Phase::Resetting
    };
    let Some((run, function)) =
        run.as_ref().and_then(|run| Some((run, run.functions().all().into_iter().find(is_its)?)))
    else {
        return Some((place, result));
    };
    let problem = match result {
        Ok(()) => {
            stopping::change(run, &function, |function, outputs| function.finish_reset(true, outputs));
            match function.lock().phase() {
                Phase::Ready => return None,
                _ => "it does not answer any more".to_string(),
            }
        }
        Err(problem) => problem,
    };
    events::record(stopping::stop_for(place, &format_args!("its guest has reset it, and the reset failed: {problem}")));
    None
}

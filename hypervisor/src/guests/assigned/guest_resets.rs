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
//! next image. A guest's end ends no reset: whoever has the function next finishes it first.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use ::pci::reset::{self, Procedure, Progress};
use ::pci::{Bdf, function};
use spin::Mutex;
use vm::devices::pci::assigned::Phase;

use super::Function;
use super::choosing::guest_of;
use super::stopping;
use crate::arch::percpu::{BOOT_CPU, wake};
use crate::arch::{cpu, fault, timer};
use crate::guests::guest::GUESTS;
use crate::guests::instance::Instance;
use crate::guests::{events, pci};

/// A function is to be reset that is not yet among those under way.
static IS_WANTED: AtomicBool = AtomicBool::new(false);
/// Resets that have begun.
static UNDER_WAY: Mutex<Vec<UnderWay>> = Mutex::new(Vec::new());

/// The time after which resets are checked again while another CPU holds their list.
const BUSY_US: u64 = 1_000;

struct UnderWay {
    procedure: Procedure,
    /// The time of the next step.
    due: u64,
}

/// A guest's function is to be reset, which states so itself.
pub fn ask() {
    IS_WANTED.store(true, Ordering::Release);
    wake(BOOT_CPU);
}

/// Takes the steps that are due; `may_begin`: those that are wanted begin. For the boot CPU.
pub fn step(may_begin: bool) {
    if may_begin && IS_WANTED.swap(false, Ordering::AcqRel) {
        wanted().into_iter().for_each(begin);
    }
    take_steps().into_iter().for_each(|(place, result)| end(place, result));
}

/// Returns when the next step is due.
pub fn alarm() -> Option<u64> {
    match UNDER_WAY.try_lock() {
        Some(all) => all.iter().map(|one| one.due).min(),
        None => Some(cpu::tsc() + timer::us_to_ticks(BUSY_US)),
    }
}

/// Returns whether a reset has begun and not ended.
pub fn are_under_way() -> bool {
    UNDER_WAY.try_lock().is_none_or(|all| !all.is_empty())
}

/// Finishes the reset of a function that no guest has any more; the calling CPU waits, up to 1.2 seconds.
pub fn finish(place: Bdf) {
    let mut all = UNDER_WAY.lock();
    all.extract_if(.., |one| one.procedure.place() == place).for_each(finish_one);
}

/// Finishes all, since no function is a guest's any more.
pub fn finish_all() {
    UNDER_WAY.lock().drain(..).for_each(finish_one);
}

fn finish_one(mut one: UnderWay) {
    if let Err(problem) = pci::with_config(|config| one.procedure.finish(config)) {
        log::warn!("PCI function {}, whose guest has ended: its reset failed: {problem}", one.procedure.place());
    }
}

/// The functions that are to be reset.
fn wanted() -> Vec<Bdf> {
    let guests = GUESTS.get().map_or(&[][..], |guests| &guests.all);
    let is_wanted = |function: &Function| {
        let mut function = function.lock();
        let is_wanted = function.physical().take_wanted_reset() && function.phase() == Phase::Resetting;
        is_wanted.then(|| function.physical().place())
    };
    let runs = guests.iter().filter_map(|guest| guest.run::<Instance>());
    runs.flat_map(|run| run.functions().iter().filter_map(is_wanted).collect::<Vec<_>>()).collect()
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
        Ok(procedure) => UNDER_WAY.lock().push(UnderWay { procedure, due: 0 }),
        Err(problem) => end(place, Err(problem)),
    }
}

/// Takes the steps that are due; returns the resets that have ended.
fn take_steps() -> Vec<(Bdf, Result<(), String>)> {
    let (now, mut ended) = (cpu::tsc(), Vec::new());
    let Some(mut all) = UNDER_WAY.try_lock() else { return ended };
    all.retain_mut(|one| {
        if one.due > now {
            return true;
        }
        let progress = pci::with_config(|config| one.procedure.step(config));
        let is_lost = fault::point!(crate::guests::faults::are_never_ready(), else false);
        let result = match progress {
            Ok(Progress::Wait(us)) => {
                one.due = now + timer::us_to_ticks(us.into());
                return true;
            }
            Ok(Progress::Done) if is_lost => Err("it is lost, as asked for".to_string()),
            Ok(Progress::Done) => Ok(()),
            Err(problem) => Err(problem.to_string()),
        };
        ended.push((one.procedure.place(), result));
        false
    });
    ended
}

/// A reset has ended: the function is its guest's again, or gone for it.
fn end(place: Bdf, result: Result<(), String>) {
    let run = guest_of(place).and_then(|guest| guest.run::<Instance>());
    let is_its = |function: &&Function| {
        let mut function = function.lock();
        function.physical().place() == place && function.phase() == Phase::Resetting
    };
    let Some((run, function)) = run.as_ref().and_then(|run| Some((run, run.functions().iter().find(is_its)?))) else {
        // Its guest has ended, or it was stopped meanwhile.
        return result.unwrap_or_else(|problem| log::warn!("PCI function {place}: its reset failed: {problem}"));
    };
    let problem = match result {
        Ok(()) => {
            stopping::change(run, function, |function, outputs| function.finish_reset(true, outputs));
            match function.lock().phase() {
                Phase::Ready => return,
                _ => "it does not answer any more".to_string(),
            }
        }
        Err(problem) => problem,
    };
    events::record(stopping::stop_for(place, &format_args!("its guest has reset it, and the reset failed: {problem}")));
}

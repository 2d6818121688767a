// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resets of functions that have begun: each goes on although its guest ends, since only it knows what firmware had
//! chosen for the function.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use ::pci::Bdf;
use ::pci::reset::{Procedure, Progress};
use spin::Mutex;

use crate::arch::percpu::{BOOT_CPU, wake};
use crate::arch::{cpu, fault, timer};
use crate::guests::pci;

/// A function is to be reset that is not yet among those under way.
static IS_WANTED: AtomicBool = AtomicBool::new(false);
/// Resets that have begun.
static UNDER_WAY: Mutex<Vec<UnderWay>> = Mutex::new(Vec::new());

/// The time after which resets are checked again while another CPU holds their list.
const BUSY_US: u64 = 1_000;

/// Physical functions with virtual ones that must not be accessed yet, and the time from which they may be.
static ENABLED: Mutex<Vec<(Bdf, u64)>> = Mutex::new(Vec::new());

/// Virtual functions must not be accessed for so long after they were enabled (PCI Express Base 5.0, section
/// 9.3.3.3.1).
const ENABLED_US: u64 = 100_000;

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

/// Returns whether a function is to be reset that is not yet among those under way, once.
pub fn take_wanted() -> bool {
    IS_WANTED.swap(false, Ordering::AcqRel)
}

/// Virtual functions of a physical one were enabled.
pub fn note_enabled(physical: Bdf) {
    ENABLED.lock().push((physical, cpu::tsc() + timer::us_to_ticks(ENABLED_US)));
    wake(BOOT_CPU);
}

/// Takes those with virtual functions that may be accessed from now on.
pub fn take_accessible() -> Vec<Bdf> {
    let now = cpu::tsc();
    ENABLED.lock().extract_if(.., |(_, due)| *due <= now).map(|(physical, _)| physical).collect()
}

/// A reset has begun.
pub fn add(procedure: Procedure) {
    UNDER_WAY.lock().push(UnderWay { procedure, due: 0 });
}

/// Returns when the next step is due.
pub fn alarm() -> Option<u64> {
    let soon = || cpu::tsc() + timer::us_to_ticks(BUSY_US);
    let reset = UNDER_WAY.try_lock().map_or_else(|| Some(soon()), |all| all.iter().map(|one| one.due).min());
    let enabled = ENABLED.try_lock().map_or_else(|| Some(soon()), |all| all.iter().map(|(_, due)| *due).min());
    reset.into_iter().chain(enabled).min()
}

/// Returns whether a reset has begun and not ended, or virtual functions were enabled and are not known yet.
pub fn are_under_way() -> bool {
    ENABLED.try_lock().is_none_or(|all| !all.is_empty()) || UNDER_WAY.try_lock().is_none_or(|all| !all.is_empty())
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

/// Takes the steps that are due; returns the resets that have ended.
pub fn take_steps() -> Vec<(Bdf, Result<(), String>)> {
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

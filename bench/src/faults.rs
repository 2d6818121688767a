// SPDX-License-Identifier: MIT OR Apache-2.0
//! `faults`: new images that fail while NMIs arrive, and guests that go on.
//!
//! A host of three CPUs is asked for an update again and again, and each new image fails in the same way
//! (`selftest=update:…`). In each of these roll-backs the two CPUs that have not failed wait at one point of their way
//! to the new image or back (`selftest=update:wait:each`), at the next one each time, while the CPU that was back first
//! sends them NMIs. Both images are the test image for that. The host logs how many came on their way. A roll-back
//! counts if at least one did, and is survived if the host answers, the image is the same one, as much memory is free
//! as before, and the guest, which checks its memory and clock on all its vCPUs, has lost nothing.
//!
//! `--quick` tries fewer; the goal's value is their share of 1,000 then.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};

use super::context::Build;
use super::report::{Figure, Goal, Report};
use super::update::hosted::{Hosted, Setup};
use super::{Bench, Context};

/// Faults of the new image, and their steps.
const FAULTS: [&str; 8] = [
    "panic:arrive",
    "exception:arrive",
    "panic:restore",
    "exception:restore",
    "stack-overflow:restore",
    "damage:restore",
    "panic:meet",
    "exception:meet",
];
/// Points of the way at which CPUs wait, and what those are called.
const POINTS: usize = 13;
/// Roll-backs with NMIs.
const ROLL_BACKS: usize = 1_000;
const QUICK_ROLL_BACKS: usize = 2 * POINTS;
/// On a crowded machine a CPU may be late, so that no NMI finds it on its way: another one is tried.
const MOST_TRIES: usize = 3;
/// The number of roll-backs between two checks of the guest.
const CHECKED_EVERY: usize = POINTS;
const COUNT: &str = "of 1000";

pub(super) static BENCH: Bench = Bench {
    name: "faults",
    about: "roll-backs of updates that fail while NMIs arrive at every point between two images, and whether guests go \
            on",
    goals: &[Goal::at_least("rollback_nmi_survived", 1_000.0, COUNT)],
    run,
};

/// The roll-backs so far.
#[derive(Debug, Default)]
struct Tally {
    /// Roll-backs in which NMIs came.
    tried: usize,
    survived: usize,
    /// Roll-backs without one, which count for nothing.
    without: usize,
    nmis: u64,
    /// Ways and times to fail, at points of the way.
    faults: BTreeSet<&'static str>,
    points: BTreeSet<String>,
}

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let wanted = if context.sizes.quick { QUICK_ROLL_BACKS } else { ROLL_BACKS };
    let mut tally = Tally::default();
    for (machine, fault) in FAULTS.into_iter().enumerate() {
        let share = (machine + 1) * wanted / FAULTS.len();
        if let Err(error) = roll_back(context, fault, share, &mut tally) {
            // The roll-backs that this machine was to try were not survived.
            context.note(&format!("faults: {fault}: {error:#}"));
            tally.tried = tally.tried.max(share);
        }
    }
    for (metric, unit, value) in [
        ("rolled_back", "roll-backs", tally.tried),
        ("survived", "roll-backs", tally.survived),
        ("without_an_nmi", "roll-backs", tally.without),
        ("nmis_on_the_way", "NMIs", tally.nmis as usize),
        ("faults", "ways to fail", tally.faults.len()),
        ("points", "points of the way", tally.points.len()),
    ] {
        report.figure(Figure::measured("3 CPUs", metric, unit, [value as f64]))?;
    }
    report.goal("rollback_nmi_survived", (tally.survived * ROLL_BACKS) as f64 / wanted as f64)
}

/// Rolls back on one machine until `until` have been tried.
fn roll_back(context: &Context, fault: &'static str, until: usize, tally: &mut Tally) -> Result<()> {
    let options = format!("tsc=skip selftest=update:{fault},update:wait:each");
    let setup =
        Setup { cpus: 3, vcpus: 3, memory_mib: 16, options, builds: [Build::WithFaultPoints; 2], ..Setup::default() };
    let mut hosted = Hosted::start(context, &setup)?;
    let before = hosted.generation_and_free_bytes()?;
    let mut unchecked = 0;
    let most = MOST_TRIES * (until - tally.tried) + POINTS;
    for _ in 0..most {
        if tally.tried >= until {
            break;
        }
        context.step(&format!("faults: {fault}: {} of {until} roll-backs", tally.tried));
        let reason = hosted.refusal()?;
        let (point, nmis) = point_and_nmis(&reason).with_context(|| format!("not a roll-back at a point: {reason}"))?;
        if nmis == 0 {
            tally.without += 1;
            continue;
        }
        let after = hosted.generation_and_free_bytes()?;
        ensure!(after == before, "after {point}: generation and free memory {after:?} instead of {before:?}");
        tally.tried += 1;
        unchecked += 1;
        tally.nmis += nmis;
        tally.faults.insert(fault);
        tally.points.insert(point.to_owned());
        if unchecked == CHECKED_EVERY || tally.tried == until {
            hosted.longest_away_us().with_context(|| format!("after {point}"))?;
            tally.survived += unchecked;
            unchecked = 0;
        }
    }
    ensure!(
        tally.tried >= until,
        "after {most} roll-backs NMIs had come in too few of them: use a machine with fewer programs on it"
    );
    Ok(())
}

/// The point at which CPUs waited in a roll-back, and how many NMIs came on their way.
fn point_and_nmis(reason: &str) -> Option<(&str, u64)> {
    let (_, rest) = reason.contains("rolled back").then(|| reason.rsplit_once('('))??;
    let (point, counts) = rest.split_once(": ")?;
    let (_, nmis) = counts.strip_suffix(" NMIs)")?.split_once(" waits, ")?;
    Some((point, nmis.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_roll_backs_point_and_its_nmis_are_read_from_its_reason() {
        let start = "the update was rolled back after 812 us, and guests go on in the old image";
        assert_eq!(point_and_nmis(&format!("{start}: self-test (back-idt: 2 waits, 17 NMIs)")), Some(("back-idt", 17)));
        for other in ["self-test", "self-test (2 waits)", "self-test (back-idt: 2 waits, no NMIs)"] {
            assert_eq!(point_and_nmis(&format!("{start}: {other}")), None, "{other}");
        }
        assert_eq!(point_and_nmis("another update is under way (back-idt: 2 waits, 17 NMIs)"), None);
    }
}

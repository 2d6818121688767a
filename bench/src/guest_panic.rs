// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest-panic`: how soon a host notices a guest that has panicked, what such a guest costs the one beside it, and
//! whether busy guests are ever taken for panicked ones.
//!
//! - **Neighbour.** A machine of one CPU, in instructions (`-icount shift=0`), so that other load does not count.
//!   A guest has panicked and is throttled; another computes and prints how much it got done, first beside it, then
//!   alone.
//! - **Watch.** Busy guests for some minutes (`--minutes`, 3 by default): spin loops, user space that polls the clock,
//!   a kernel that idles by polling, a mix of computing, system calls, memory and sleeps. Each accusation is a false
//!   alarm.
//! - **Notice.** Then another guest panics among them, without a driver to report it: the time from its last line to
//!   the host's event, both by the tool's clock.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use baton::size::Size;
use wire::{EventKind, RequestBody};

use super::report::{Figure, Goal, Report};
use super::setup::COUNT_INSTRUCTIONS;
use super::{Bench, Context};

mod machine;

use machine::{Machines, linux};

pub(super) static BENCH: Bench = Bench {
    name: "guest-panic",
    about: "a guest that has panicked: how soon it is noticed, what it costs its neighbour; false alarms",
    goals: &[
        Goal::at_most("panic_notice_s", 1.0, "s"),
        Goal::at_least("neighbour_throughput", 0.98, "ratio"),
        Goal::at_most("false_alarms", 0.0, "alarms"),
    ],
    run,
};

const PANICS: &str = "panics";
const BUSY: &str = "busy";
/// A stretch of computing.
const STRETCH: &str = "compute:400";
/// Stretches that count, beside the panicked guest and alone.
const STRETCHES: usize = 2;
/// The last line of a Linux kernel that has panicked.
const LAST_LINE: &str = "end Kernel panic";
const MEMORY: Size = Size::mebibytes(192);

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let mut throughputs = [Vec::new(), Vec::new()];
    for run in 1..=context.runs {
        context.step(&format!("guest-panic: neighbour, run {run} of {}", context.runs));
        let (beside, alone) = neighbour(context)?;
        throughputs[0].push(beside);
        throughputs[1].push(alone);
    }
    let [beside, alone] = throughputs;
    let rounds = |variant: &str, runs| Figure::measured(variant, "throughput", "rounds/ms", runs);
    let throughput = report.compared(
        rounds("beside a panicked guest", beside),
        rounds("alone", alone),
        "beside/alone",
        "throughput_ratio",
    )?;
    report.goal("neighbour_throughput", throughput)?;
    let watched = watch(context)?;
    let alarms = report.figure(Figure::measured("busy guests", "alarms", "alarms", [watched.alarms]))?;
    report.figure(Figure::measured("busy guests", "watched", "min", [watched.minutes]))?;
    report.goal("false_alarms", alarms)?;
    let notice = report.figure(Figure::measured("among busy guests", "notice", "s", watched.notices_s))?;
    report.goal("panic_notice_s", notice)
}

/// Measures a guest's work beside a panicked one and alone, in rounds per millisecond.
fn neighbour(context: &Context) -> Result<(f64, f64)> {
    let stretches = [STRETCH; 3 * STRETCHES + 2].join(",");
    let guests = [linux(context, PANICS, "panic", "")?, linux(context, BUSY, &stretches, "")?];
    let mut machines = Machines::start(context, 1, &guests, COUNT_INSTRUCTIONS.map(Into::into).to_vec())?;
    machines.start_guest(PANICS)?;
    machines.wait_event(
        "the panic's notice",
        |kind| matches!(kind, EventKind::VmThrottled { name, .. } if name == PANICS),
    )?;
    machines.start_guest(BUSY)?;
    let beside = rounds_per_ms(&mut machines)?;
    machines.order(RequestBody::VmStop { name: PANICS.to_owned() })?;
    // The one that is under way is half of either.
    machines.wait_line(BUSY, "compute: ")?;
    let alone = rounds_per_ms(&mut machines)?;
    Ok((beside, alone))
}

/// Returns the mean of the next stretches.
fn rounds_per_ms(machines: &mut Machines) -> Result<f64> {
    let mut sum = 0.0;
    for _ in 0..STRETCHES {
        let (_, line) = machines.wait_line(BUSY, "compute: ")?;
        sum += throughput(&line).with_context(|| format!("the agent's line {line:?} is not understood"))?;
    }
    Ok(sum / STRETCHES as f64)
}

/// Of `compute: N rounds in MS ms`.
fn throughput(line: &str) -> Option<f64> {
    let mut words = line.split_once("compute: ")?.1.split_whitespace();
    let rounds: f64 = words.next()?.parse().ok()?;
    let milliseconds: f64 = words.nth(2)?.parse().ok()?;
    (milliseconds > 0.0).then(|| rounds / milliseconds)
}

struct Watched {
    minutes: f64,
    alarms: f64,
    notices_s: Vec<f64>,
}

/// Watches busy guests, then a panic among them.
fn watch(context: &Context) -> Result<Watched> {
    let guests = [
        linux(context, "spin", "compute:86400000", "")?,
        linux(context, "poll", "poll:86400000", "")?,
        linux(context, "mix", "mix:86400000", "")?,
        linux(context, "idle", "wait", "idle=poll")?,
        linux(context, PANICS, "panic", "")?,
    ];
    let mut machines = Machines::start(context, 2, &guests, Vec::new())?;
    let busy = ["spin", "poll", "mix", "idle"];
    for name in busy {
        context.step(&format!("guest-panic: {name} starts"));
        machines.start_guest(name)?;
        machines.wait_line(name, lab::GREETING)?;
    }
    let time = Duration::from_secs(60 * context.minutes);
    machines
        .follow(time, |left| context.step(&format!("guest-panic: busy guests, {} min left", left.as_secs() / 60)))?;
    let alarms = machines.count(|kind| busy.iter().any(|name| is_alarm(kind, name)));
    let mut notices_s = Vec::new();
    for run in 1..=context.runs {
        context.step(&format!("guest-panic: notice, run {run} of {}", context.runs));
        machines.start_guest(PANICS)?;
        let (panicked, _) = machines.wait_line(PANICS, LAST_LINE)?;
        let is_it = |kind: &EventKind| matches!(kind, EventKind::VmPanicked { name } if name == PANICS);
        let noticed = machines.wait_event("the panic's notice", is_it)?;
        notices_s.push(notice_s(panicked, noticed)?);
        machines.stop_guest(PANICS)?;
    }
    Ok(Watched { minutes: time.as_secs_f64() / 60.0, alarms: alarms as f64, notices_s })
}

/// Seconds from the arrival of the last line to that of the event. An event that arrives first is an error, not a
/// notice of 0 s: the span would measure nothing.
fn notice_s(panicked: Duration, noticed: Duration) -> Result<f64> {
    match noticed.checked_sub(panicked) {
        Some(notice) => Ok(notice.as_secs_f64()),
        None => bail!("the event came {:?} before the line that it is about", panicked - noticed),
    }
}

fn is_alarm(kind: &EventKind, guest: &str) -> bool {
    match kind {
        EventKind::VmPanicked { name } | EventKind::VmHung { name, .. } | EventKind::VmThrottled { name, .. } => {
            name == guest
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_line_gives_rounds_per_millisecond() {
        assert_eq!(throughput("compute: 1200 rounds in 400 ms"), Some(3.0));
        for line in ["compute: many rounds in 400 ms", "compute: 1 rounds in 0 ms", "heartbeat 1", "compute: 12"] {
            assert_eq!(throughput(line), None, "{line}");
        }
    }

    #[test]
    fn an_event_before_its_line_is_an_error() {
        let at = Duration::from_millis;
        assert_eq!(notice_s(at(1000), at(1250)).expect("in order"), 0.25);
        assert!(notice_s(at(1250), at(1000)).expect_err("out of order").to_string().contains("250ms before"));
    }

    #[test]
    fn every_accusation_of_a_busy_guest_is_an_alarm() {
        let name = || "spin".to_owned();
        assert!(is_alarm(&EventKind::VmPanicked { name: name() }, "spin"));
        assert!(is_alarm(&EventKind::VmThrottled { name: name(), vcpu: 1 }, "spin"));
        assert!(!is_alarm(&EventKind::VmPanicked { name: name() }, "poll"));
        assert!(!is_alarm(&EventKind::VmStarted { name: name() }, "spin"));
    }
}

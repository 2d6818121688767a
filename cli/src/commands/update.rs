// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton update`: replaces the running image while guests run.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use wire::{ReplyBody, RequestBody, UpdateBy, UpdateReport};

use super::shipment::{self, Shipment, signature, with_build};
use super::{DONE, connect};
use crate::args::{Format, Target};
use crate::clock;

/// The kind of update.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    /// Go back to the image that ran before.
    pub previous: bool,
    /// Rehearse only.
    pub dry_run: bool,
    /// Permit an image of a lower security version.
    pub allow_downgrade: bool,
    /// Seconds after which the host returns to the image before unless the update is confirmed.
    pub confirm_within: Option<u32>,
    /// Leave the confirmation to another command.
    pub no_confirm: bool,
}

/// A report and the time at which it came, by this machine's clock.
#[derive(Serialize)]
struct Reported<'r> {
    #[serde(flatten)]
    report: &'r UpdateReport,
    time: &'r str,
}

pub(super) fn run(target: &Target, shipment: Option<Shipment>, how: How, format: Format) -> Result<u8> {
    let mut client = connect(target)?;
    if let Some(shipment) = &shipment {
        shipment.send(&mut client, how.allow_downgrade, format)?;
    }
    let by = match shipment {
        Some(_) => UpdateBy::Upload,
        None if how.previous => UpdateBy::Previous,
        None => UpdateBy::Bundle,
    };
    shipment::permit_downgrade(&mut client, how.allow_downgrade)?;
    let body = match how.confirm_within {
        Some(seconds) => RequestBody::UpdateUnlessConfirmed { is_dry_run: how.dry_run, by, seconds },
        None => RequestBody::Update { is_dry_run: how.dry_run, by },
    };
    let before = client.info()?.generation;
    let report = match shipment::request(&mut client, &body, by == UpdateBy::Upload) {
        Ok(ReplyBody::Updated(report)) => report,
        Err(error) => {
            shipment::after_lost_answer(&mut client, before, error)?;
            drop(client);
            return confirm_by_itself(target, how, before + 1, format).map(|()| DONE);
        }
        Ok(other) => bail!("the host answered something else ({other:?}); use tool and host of one release"),
    };
    let time = clock::text(clock::now_ms());
    match format.json {
        true => println!("{}", serde_json::to_string(&Reported { report: &report, time: &time })?),
        false => println!("{}time         {time}", text(&report)),
    }
    drop(client);
    confirm_by_itself(target, how, report.generation, format).map(|()| DONE)
}

/// `baton confirm`: the image that runs is to stay.
pub(super) fn confirm(target: &Target) -> Result<u8> {
    let mut client = connect(target)?;
    client.order(RequestBody::Confirm)?;
    println!("confirmed: the host stays with generation {}", client.info()?.generation);
    Ok(DONE)
}

/// Confirms an update that has to be confirmed. A connection of its own shows that operators reach the new image.
fn confirm_by_itself(target: &Target, how: How, generation: u64, format: Format) -> Result<()> {
    let Some(seconds) = how.confirm_within.filter(|_| !how.dry_run) else { return Ok(()) };
    if how.no_confirm {
        eprintln!("the host returns to the image before {seconds} s after the update, unless you `baton confirm` it");
        return Ok(());
    }
    let hint = "the host returns to the image before by itself; see `baton events`";
    let mut client = connect(target).context(hint)?;
    let now = client.info().context(hint)?.generation;
    if now != generation {
        bail!("generation {generation} is not confirmed: the host runs generation {now} now; see `baton events`");
    }
    client.order(RequestBody::Confirm).context(hint)?;
    if !format.json {
        println!("confirmed    the new image was reached over a new connection, and stays");
    }
    Ok(())
}

/// Formats a report.
pub fn text(report: &UpdateReport) -> String {
    let milliseconds = |nanoseconds: u64| format!("{:.1} ms", nanoseconds as f64 / 1e6);
    let old = with_build(&report.old_version, &report.old_build);
    let new = with_build(&report.new_version, &report.new_build);
    let (all, busy) = (milliseconds(report.preparation_ns), milliseconds(report.preparation_busy_ns));
    let mut text = format!("generation   {} ({old} -> {new})\n", report.generation);
    text += &signature(report.signer.as_deref());
    text += &format!("preparation  {all}, of which {busy} on a CPU\n");
    text += &format!("memory       {} KiB\n", report.memory_bytes / 1024);
    if report.is_dry_run {
        text + "dry run: the new image could go on from here; nothing was replaced\n"
    } else {
        text + &blackout(report)
    }
}

/// Formats the blackout, and a line for each CPU: microseconds from the order to leave the guests.
fn blackout(report: &UpdateReport) -> String {
    const STEPS: [&str; 7] = ["left", "saved", "gone", "arrived", "restored", "committed", "entered"];
    let mut text = format!("blackout     {:.1} us\nCPU      ", report.blackout_ns as f64 / 1e3);
    for step in STEPS {
        let _ = write!(text, " {step:>10}");
    }
    for steps in &report.cpus {
        let times = [
            steps.left_ns,
            steps.saved_ns,
            steps.gone_ns,
            steps.arrived_ns,
            steps.restored_ns,
            steps.committed_ns,
            steps.entered_ns,
        ];
        let _ = write!(text, "\n{:<9}", steps.index);
        for nanoseconds in times {
            let _ = write!(text, " {:>10.1}", nanoseconds as f64 / 1e3);
        }
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use wire::UpdateSteps;

    use super::*;

    fn trial() -> UpdateReport {
        UpdateReport {
            is_dry_run: true,
            generation: 2,
            old_version: "0.1.0".to_owned(),
            new_version: "0.1.0".to_owned(),
            new_build: "a1b2c3".to_owned(),
            preparation_ns: 40_250_000,
            preparation_busy_ns: 20_000_000,
            memory_bytes: 10 << 20,
            ..UpdateReport::default()
        }
    }

    #[test]
    fn a_dry_run_states_that_it_was_one() {
        let expected = "generation   2 (0.1.0 -> 0.1.0 (a1b2c3))\n\
                        preparation  40.2 ms, of which 20.0 ms on a CPU\n\
                        memory       10240 KiB\n\
                        dry run: the new image could go on from here; nothing was replaced\n";
        assert_eq!(text(&trial()), expected);
    }

    #[test]
    fn a_report_for_programs_has_builds_and_the_time() {
        let json = serde_json::to_value(Reported { report: &trial(), time: "2026" }).expect("JSON");
        assert_eq!((&json["new_build"], &json["time"]), (&"a1b2c3".into(), &"2026".into()));
    }

    #[test]
    fn an_update_has_a_line_for_each_cpu() {
        let steps = UpdateSteps { index: 3, left_ns: 1_500, entered_ns: 99_950, ..UpdateSteps::default() };
        let report = UpdateReport { is_dry_run: false, blackout_ns: 98_450, cpus: vec![steps], ..trial() };
        let expected = "blackout     98.5 us\n\
             CPU             left      saved       gone    arrived   restored  committed    entered\n\
             3                1.5        0.0        0.0        0.0        0.0        0.0      100.0\n";
        assert!(text(&report).ends_with(expected), "{}", text(&report));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's instructions for a reading of its metrics, on a machine of one CPU; the emulator counts its instructions
//! (`-icount shift=0`, asked for with QMP's `query-replay`). A scrape asks the host nothing: the service reads it at
//! intervals, and a scrape gets the last reading.
//!
//! From the end of one reading to the end of the tenth after it, all instructions of the machine are counted; then, for
//! as long, those of the same machine without the service. The guests sleep. The difference is the readings': requests,
//! answers, the serial line's interrupts, and the samples of vCPUs.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use lab::qmp;

use super::super::report::{Figure, Report};
use super::super::setup::{HostSetup, temporary_folder};
use super::http::Connection;
use super::service::{self, Service};
use super::{Context, MEMORY};

/// Readings of a run.
const READINGS: u32 = 10;
/// Readings before those: the first takes all that the host has.
const FIRST_READINGS: u32 = 3;
/// The time after which a service that has ended costs nothing more.
const DELAY: Duration = Duration::from_secs(2);

pub(super) fn run(context: &Context, program: &Path, report: &mut Report<'_>) -> Result<()> {
    let (mut readings, mut idle) = (Vec::new(), Vec::new());
    for run in 1..=context.runs {
        context.step(&format!("operating: a reading's instructions, run {run} of {}", context.runs));
        let (of_reading, of_second) = measure(context, program)?;
        readings.push(of_reading);
        idle.push(of_second);
    }
    report.figure(Figure::measured("icount, not read", "a second", "instructions", idle))?;
    let value = report.figure(Figure::measured("icount, 2 guests", "a reading", "instructions", readings))?;
    report.goal("metrics_host_instructions", value)
}

/// Returns the instructions of a reading, and those of a second without any.
fn measure(context: &Context, program: &Path) -> Result<(f64, f64)> {
    let folder = temporary_folder()?;
    let monitor = folder.path().join("qmp.sock");
    let mut setup = HostSetup::new(MEMORY);
    // Without sleep=off: an idle machine waits as long as a real one does.
    setup.extra.extend(["-icount", "shift=0", "-cpu", "max,-x2apic"].map(Into::into));
    setup.extra.extend(qmp::arguments(&monitor));
    let host = service::host(context, setup)?;
    let mut monitor = qmp::Monitor::connect(&monitor)?;
    let service = Service::start(program, folder.path(), &host.lab.dir().control_socket(), 1, &[])?;
    let mut news = service.connect(context.timeout)?;
    news.listen()?;
    wait_readings(&mut news, FIRST_READINGS)?;
    let (begun, before) = (Instant::now(), monitor.instructions()?);
    wait_readings(&mut news, READINGS)?;
    let (read, span) = ((monitor.instructions()? - before) as f64, begun.elapsed());
    drop((news, service));
    thread::sleep(DELAY);
    let before = monitor.instructions()?;
    thread::sleep(span);
    let idle = (monitor.instructions()? - before) as f64;
    Ok(((read - idle) / f64::from(READINGS), idle / span.as_secs_f64()))
}

/// Waits for the ends of so many readings.
fn wait_readings(news: &mut Connection, count: u32) -> Result<()> {
    let mut left = count;
    while left > 0 {
        let line = news.line().context("the host is not read")?;
        let Some(status) = line.strip_prefix("data: ").filter(|data| data.contains("\"read_ms\"")) else { continue };
        let status: serde_json::Value = serde_json::from_str(status)?;
        left -= u32::from(status["state"] == "connected");
    }
    Ok(())
}

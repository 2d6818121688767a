// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host that is replaced: by itself, warm, and by itself, through the machine's firmware.

use std::cell::Cell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use baton::config::Image;
use baton::size::Size;
use lab::qmp::{self, Monitor};
use lab::{Accelerator, Emulator, Hardware, Lab, Machine, What};
use wire::{ReplyBody, RequestBody};

use crate::Context;
use crate::setup::{HostSetup, keeper, temporary_folder};
use crate::statistics::median;

/// The line of the host's log about the guest's start.
pub(super) const STARTED: &str = "keeper started";
/// The number of restarts of one host: each takes little beside a Linux's start.
const TIMES: usize = 5;
const CPUS: u32 = 2;
const MEMORY: Size = Size::mebibytes(1024);
const GUEST_MEMORY: Size = Size::mebibytes(16);

/// A warm restart, in milliseconds.
pub(super) struct Warm {
    /// From the stop of the first guest to its first instruction, by the host's clock.
    pub blackout_ms: f64,
    /// From the request to its answer, by the tool's clock.
    pub asked_ms: f64,
}

/// Restarts a host several times; returns the medians.
pub(super) fn warm(context: &Context) -> Result<Warm> {
    let folder = temporary_folder()?;
    let mut lab = start(context, folder.path(), Vec::new())?;
    wait_running(&mut lab, context.timeout)?;
    let (mut blackouts, mut asked) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        let restart = warm_once(context, &lab)?;
        blackouts.push(restart.blackout_ms);
        asked.push(restart.asked_ms);
    }
    Ok(Warm { blackout_ms: median_of(&blackouts)?, asked_ms: median_of(&asked)? })
}

fn warm_once(context: &Context, lab: &Lab) -> Result<Warm> {
    let asked = lab.elapsed();
    match lab.client()?.request_within(context.timeout, RequestBody::Restart)? {
        ReplyBody::Restarted(report) => {
            let blackout = report.machine_blackout_ns.context("no guest was started again")?;
            Ok(Warm { blackout_ms: blackout as f64 / 1e6, asked_ms: milliseconds(lab.elapsed() - asked) })
        }
        other => bail!("not the answer to a restart: {other:?}"),
    }
}

/// Resets the machine under a host several times; returns the median.
pub(super) fn cold(context: &Context) -> Result<f64> {
    let folder = temporary_folder()?;
    let socket = folder.path().join("monitor");
    // The lab's machines end where they would be reset; the last option counts.
    let resets = ["-action".into(), "reboot=reset".into()];
    let extra = qmp::arguments(&socket).into_iter().chain(resets).collect();
    let mut lab = start(context, folder.path(), extra)?;
    wait_line(&mut lab, context.timeout, STARTED)?;
    let mut monitor = Monitor::connect(&socket)?;
    let mut blackouts = Vec::new();
    for _ in 0..TIMES {
        let from = lab.elapsed();
        monitor.reset()?;
        blackouts.push(milliseconds(wait_line(&mut lab, context.timeout, STARTED)?.saturating_sub(from)));
    }
    median_of(&blackouts)
}

fn median_of(runs: &[f64]) -> Result<f64> {
    median(runs).context("there were no runs")
}

/// Waits until the host answers and its guest runs, whichever comes first.
fn wait_running(lab: &mut Lab, timeout: Duration) -> Result<()> {
    let (is_ready, has_started) = (Cell::new(false), Cell::new(false));
    lab.wait_for(timeout, |what| {
        match what {
            What::Ready => is_ready.set(true),
            What::HostLine(line) if line.contains(STARTED) => has_started.set(true),
            _ => {}
        }
        is_ready.get() && has_started.get()
    })
    .map(drop)
}

fn start(context: &Context, folder: &Path, extra: Vec<OsString>) -> Result<Lab> {
    HostSetup { extra, ..setup(context)? }.start_in(context, folder)
}

fn setup(context: &Context) -> Result<HostSetup> {
    let guest = keeper(context, "rounds=2000000000 do=registers", GUEST_MEMORY)?;
    Ok(HostSetup { cpus: CPUS, guests: vec![guest], image: Image::Usual, ..HostSetup::new(MEMORY) })
}

/// The machine of all variants, which starts this kernel.
pub(super) fn machine(context: &Context, image: PathBuf) -> Machine {
    Machine {
        emulator: Emulator::Qemu { program: context.qemu.clone(), accelerator: Accelerator::Tcg },
        cpus: CPUS,
        memory: MEMORY,
        image,
        bundle: None,
        disc: None,
        cmdline: String::new(),
        hardware: Hardware::default(),
        extra: Vec::new(),
    }
}

/// Returns a bundle with the image and a guest that computes for ever.
pub(super) fn bundle_bytes(context: &Context) -> Result<Vec<u8>> {
    setup(context)?.bundle(context)
}

/// Waits for a line on COM1 that contains `text`; returns when its end arrived.
pub(super) fn wait_line(lab: &mut Lab, timeout: Duration, text: &str) -> Result<Duration> {
    let is_it = |what: &What| matches!(what, What::HostLine(line) if line.contains(text));
    let seen = lab.wait_for(timeout, is_it).with_context(|| format!("the line {text:?} did not come"))?;
    seen.last().map(|happening| happening.at).with_context(|| format!("the line {text:?} did not come"))
}

pub(super) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

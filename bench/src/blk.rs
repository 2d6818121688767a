// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blk`: a guest's virtio-blk disk whose storage is another guest's: stock nbdkit on stock Linux, with an NVMe disk.
//!
//! - **Cost**: the guest writes and verifies blocks of 4 KiB, one at a time, past its page cache. Instructions are
//!   counted (`-icount shift=0`) on a machine of one CPU: the time stamp counter without what is spent in guests and in
//!   waiting is the host's part: both guests' exits, the NBD client, the sockets, scheduling, and the counting itself.
//!   The requests are those that the host's disk list has counted meanwhile.
//! - **Survival**: the disk has a write-back cache. The host is updated again and again, and the storage guest reset
//!   again and again, which loses its page cache and whatever nbdkit was at. Each that the disk comes back from, with
//!   every block right and no error in its guest, counts.
//! - **Beside KVM**: reads of 4 KiB at random places, 32 at a time, of a disk that nbdkit has in memory, in time.

mod cost;
mod machine;
mod reads;
mod survival;

use std::path::Path;

use anyhow::Result;

use self::cost::Counts;
use self::reads::Server;
use super::report::{Figure, Goal, Report};
use super::setup::HostSetup;
use super::statistics::ratios;
use super::{Bench, Context, kvm};

pub(super) static BENCH: Bench = Bench {
    name: "blk",
    about: "a disk behind another guest's server: instructions for a request, and updates and resets survived",
    goals: &[
        Goal::at_least("blk_survives", EVENTS as f64, "of 70"),
        Goal::at_least("blk_iops_vs_kvm", 1.2, "ratio"),
        Goal::at_least("blk_iops_vs_host_nbdkit", 0.9, "ratio"),
    ],
    run,
};

/// Goals of the comparison with KVM, whose nbdkit is in another guest, and in its host.
const PEER_GOALS: [(Server, &str); 2] = [(Server::Guest, "blk_iops_vs_kvm"), (Server::Host, "blk_iops_vs_host_nbdkit")];
/// Updates of the host, and resets of the storage guest.
const UPDATES: u64 = 50;
const RESETS: u64 = 20;
const EVENTS: u64 = UPDATES + RESETS;
/// With `--quick`.
const QUICK_UPDATES: u64 = 5;
const QUICK_RESETS: u64 = 2;

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    costs(context, report)?;
    survives(context, report)?;
    beside_kvm(context, report)
}

/// Reads with Baton and with KVM in turn, so that what happens on this machine meanwhile concerns all.
fn beside_kvm(context: &Context, report: &mut Report<'_>) -> Result<()> {
    if let Some(missing) = kvm::missing(context) {
        context.note(&format!("blk: nothing to compare with: {missing}"));
        return PEER_GOALS.into_iter().try_for_each(|(_, goal)| report.leave_out(goal));
    }
    let (mut own, mut peers) = (Vec::new(), [Vec::new(), Vec::new()]);
    for run in 1..=context.runs {
        context.step(&format!("blk: reads beside KVM, run {run} of {}", context.runs));
        own.push(reads::own(context)?);
        for ((server, _), rates) in PEER_GOALS.iter().zip(&mut peers) {
            rates.push(reads::kvm(context, *server)?);
        }
    }
    let figure = |variant: &str, values: &[f64]| Figure::measured(variant, "reads_per_second", "1/s", values);
    report.figure(figure("4 KiB, 32 at a time", &own))?;
    for ((server, goal), rates) in PEER_GOALS.into_iter().zip(peers) {
        let place = if server == Server::Guest { "another guest" } else { "the host" };
        report.figure(figure(&format!("4 KiB, 32 at a time, KVM, nbdkit in {place}"), &rates))?;
        let ratios = ratios(&own, &rates);
        let value = report.figure(Figure::measured(format!("beside nbdkit in {place}"), "ratio", "ratio", ratios))?;
        report.goal(goal, value)?;
    }
    Ok(())
}

/// Returns a machine of one CPU whose guest `web` has such a disk, and writes and verifies it for ever, or rests. Files
/// are put in `folder`.
pub(super) fn setup(context: &Context, folder: &Path, is_used: bool) -> Result<HostSetup> {
    machine::setup(context, folder, if is_used { cost::TASKS } else { "wait" }, false)
}

fn costs(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let measure = |run| {
        context.step(&format!("blk: requests of 4 KiB, run {run} of {}", context.runs));
        cost::measure(context)
    };
    let runs = (1..=context.runs).map(measure).collect::<Result<Vec<Counts>>>()?;
    let mut per_request = |metric, unit, value: fn(&Counts) -> f64| {
        let values: Vec<f64> = runs.iter().map(|counts| value(counts) / counts.requests).collect();
        report.figure(Figure::measured("4 KiB, one at a time", metric, unit, values))
    };
    per_request("host_instructions_per_request", "instructions", |counts| counts.host)?;
    per_request("exits_per_request", "exits", |counts| counts.exits)?;
    per_request("all_instructions_per_request", "instructions", |counts| counts.all)?;
    Ok(())
}

fn survives(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let (updates, resets) = if context.sizes.quick { (QUICK_UPDATES, QUICK_RESETS) } else { (UPDATES, RESETS) };
    let survived = survival::measure(context, updates, resets)?;
    let mut stall = |case, ms| report.figure(Figure::measured(case, "longest_stall", "ms", [ms]));
    stall("without either", survived.stall_ms)?;
    stall("updates", survived.update_stall_ms)?;
    stall("resets of the storage guest", survived.reset_stall_ms)?;
    report.figure(Figure::measured("write-back", "blocks_verified", "blocks", [survived.verified as f64]))?;
    report.goal("blk_survives", (survived.events * EVENTS) as f64 / (updates + resets) as f64)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `size`: bytes of the hypervisor, in its file and in memory.
//!
//! The image counts as the larger of its file (without symbols) and the memory that it holds while the host runs, which
//! the host itself states: its segments without what only the boot needs, which is given back. The overhead is all
//! memory that is neither free, nor the guest's, nor the bundle's, while one guest runs.

use anyhow::{Context as _, Result};

use super::host::{Hosted, Plan};
use super::report::{Figure, Goal, Report};
use super::{Bench, Context, guest_boot};

/// The goal for the image, which `structure` holds against its file alone.
pub(super) const IMAGE_BYTES: Goal = Goal::at_most("image_bytes", (3 << 19) as f64, "bytes");

pub(super) static BENCH: Bench = Bench {
    name: "size",
    about: "bytes of the hypervisor: its image, and its memory beside one guest's",
    goals: &[IMAGE_BYTES, Goal::at_most("host_overhead_bytes", (16 << 20) as f64, "bytes")],
    run,
};

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    context.step("size: a host with one guest");
    let file = std::fs::metadata(&context.image).with_context(|| format!("{} is gone", context.image.display()))?;
    let plan = Plan { cmdline: guest_boot::COMMAND_LINE.to_owned(), ..guest_boot::default_plan(context)? };
    let mut hosted = Hosted::start(context, &plan, |_| Vec::new())?;
    let mut client = hosted.start_guest()?;
    hosted.wait_line(guest_boot::MARKER)?;
    let info = client.info()?;
    let mut bytes =
        |metric: &str, value: u64| report.figure(Figure::measured("baton", metric, "bytes", [value as f64]));
    let in_file = bytes("image_file", file.len())?;
    let in_memory = bytes("image_memory", info.image_bytes)?;
    let overhead = bytes("host_overhead", info.host_overhead_bytes)?;
    report.goal(IMAGE_BYTES.id, in_file.max(in_memory))?;
    report.goal("host_overhead_bytes", overhead)
}

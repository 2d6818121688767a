// SPDX-License-Identifier: MIT OR Apache-2.0
//! `frames`: the cost of the account of memory: bytes of metadata written and instructions, before the first
//! guest and in all.
//!
//! Hosts of 1 to 512 GiB boot one small guest by each policy in an emulator with a time stamp counter that counts
//! instructions; their memory is taken from the machine below only where it is touched. Each boots once, since
//! instructions repeat. Where records would take more memory than this machine has, and for 12 TiB, a model computes
//! the figures, which are marked as modelled.

mod boot;
mod model;
mod scrub;

use anyhow::Result;

use self::boot::{Account, Boot, GIB};
use super::report::{Figure, Goal, Report};
use super::{Bench, Context};

pub(super) static BENCH: Bench = Bench {
    name: "frames",
    about: "bytes and instructions of metadata for memory, before the first guest and in all, by policy and size",
    goals: &[
        Goal::at_most("metadata_bytes_before_guest_512g", 1_048_576.0, BYTES),
        Goal::at_most("hvo_on_vs_off", 0.01, "ratio"),
    ],
    run,
};

const BYTES: &str = "bytes";
const INSTRUCTIONS: &str = "instructions";
const SIZES_GIB: [u64; 5] = [1, 16, 64, 256, 512];
/// The size of the goals.
const LARGEST_GIB: u64 = 512;
/// Up to here the records that `deferred` leaves are waited for.
const WAITED_FOR_GIB: u64 = 16;
const POLICIES: [(&str, &str); 3] =
    [("eager", "frames=eager hvo=off"), ("deferred", "frames=deferred"), ("extents", "frames=extents")];
const HUGE_FRAMES: u64 = 500;

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    for size_gib in SIZES_GIB {
        for (policy, options) in POLICIES {
            let waits = policy == "deferred" && size_gib <= WAITED_FOR_GIB;
            let boot = Boot { size_gib, options: options.to_owned(), waits };
            let account = measure(context, &boot, policy == "eager")?;
            let variant = format!("{policy} {size_gib} GiB");
            report_account(report, &variant, &account)?;
            let total = account.total_bytes.unwrap_or_else(|| model::total_bytes(policy, size_gib, &account));
            let is_modelled = account.is_modelled || account.total_bytes.is_none() && policy == "deferred";
            report.figure(Figure { is_modelled, ..Figure::measured(variant, "bytes_total", BYTES, [total]) })?;
            if policy == "extents" && size_gib == LARGEST_GIB {
                report.goal("metadata_bytes_before_guest_512g", account.before_guest_bytes)?;
            }
        }
    }
    compare_huge_frames(context, report)?;
    model::compute(report)?;
    scrub::compare(context, report)
}

/// Boots, or scales the figures of a smaller machine if the records do not fit here.
fn measure(context: &Context, boot: &Boot, writes_all: bool) -> Result<Account> {
    context.step(&format!("frames: {} GiB, {}", boot.size_gib, boot.options));
    match writes_all && !boot::is_room_for(model::record_bytes(boot.size_gib * GIB)) {
        false => boot.run(context),
        true => {
            let smaller = Boot { size_gib: SIZES_GIB[1], ..boot.clone() };
            Ok(model::scaled(&smaller.run(context)?, smaller.size_gib, boot.size_gib))
        }
    }
}

fn report_account(report: &mut Report<'_>, variant: &str, account: &Account) -> Result<()> {
    let rows = [
        ("bytes_before_guest", BYTES, account.before_guest_bytes),
        ("instructions_at_boot", INSTRUCTIONS, account.boot_instructions),
    ];
    for (metric, unit, value) in rows {
        let figure = Figure::measured(variant, metric, unit, [value]);
        report.figure(Figure { is_modelled: account.is_modelled, ..figure })?;
    }
    Ok(())
}

/// 500 huge frames of 1 GiB are set aside on 512 GiB: with the records of their tails, and without.
fn compare_huge_frames(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let account = |hvo: &str| -> Result<Account> {
        let options = format!("frames=deferred hvo={hvo} huge-frames=1G:{HUGE_FRAMES}");
        let boot = Boot { size_gib: LARGEST_GIB, options, waits: false };
        let needed = if hvo == "off" { model::record_bytes(HUGE_FRAMES * GIB) } else { 0.0 };
        if boot::is_room_for(needed) {
            context.step(&format!("frames: {HUGE_FRAMES} huge frames, hvo={hvo}"));
            return boot.run(context);
        }
        let (size_gib, count) = (SIZES_GIB[1], SIZES_GIB[1] - 4);
        let options = format!("frames=deferred hvo={hvo} huge-frames=1G:{count}");
        context.step(&format!("frames: {count} huge frames, hvo={hvo}"));
        Ok(model::scaled(&Boot { size_gib, options, waits: false }.run(context)?, count, HUGE_FRAMES))
    };
    let (off, on) = (account("off")?, account("on")?);
    report_account(report, "500 x 1 GiB, hvo=off", &off)?;
    report_account(report, "500 x 1 GiB, hvo=on", &on)?;
    let ratio = on.boot_instructions / off.boot_instructions;
    match off.is_modelled {
        true => report.modelled_goal("hvo_on_vs_off", ratio),
        false => report.goal("hvo_on_vs_off", ratio),
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `devices`: PCI functions that guests have, behind AMD-Vi and behind VT-d.
//!
//! - **Interrupts**: the guest `edu` has QEMU's device of that name raise message signalled interrupts, from the write
//!   that raises one to the guest's handler, in instructions (`-icount shift=0`). The device takes none.
//! - **Transfers**: a Linux guest sends a numbered UDP datagram each millisecond through a network card of its own to a
//!   receiver outside the machine, which stamps them, while the host is updated again and again. The longest silence in
//!   each update's window is compared with that of a window of equal length right after it. Beside it the same stream
//!   comes from a guest of stock Linux with KVM, which kexec replaces.
//! - **Blackouts**: transfers of `edu` that end while all CPUs are between two images, and all that CPUs write to
//!   registers meanwhile.
//! - **Reads**: a Linux guest reads 4 KiB at random places of an NVMe disk of its own, 1 and 32 at a time, beside the
//!   same Linux directly on the emulator, which drives the same IOMMU in strict mode.

mod blackout;
mod messages;
mod reads;
mod register_writes;
mod replaced;
mod silence;

use anyhow::Result;
use baton::config::Iommu;

use super::report::{Figure, Goal, Report};
use super::statistics::{median, ratios};
use super::{Bench, Context};

pub(super) static BENCH: Bench = Bench {
    name: "devices",
    about: "a guest's own disk or network card: interrupts, and transfers across updates, with AMD-Vi and VT-d",
    goals: &[
        Goal::at_most("msi_delivery_instructions", 1500.0, "instructions"),
        Goal::at_most("msi_delivery_halted_instructions", 2000.0, "instructions"),
        Goal::at_most("transfer_gap_ms", 10.0, "ms"),
        Goal::at_most("transfer_gap_p95_ms", 20.0, "ms"),
        Goal::at_most("datagrams_lost", 0.0, "datagrams"),
        Goal::at_least("dma_in_blackout", 1000.0, "of 1000"),
        Goal::at_most("register_writes_in_blackout", 0.0, "writes"),
        Goal::at_least("nvme_iops_vs_direct_qd1", 0.6, "ratio"),
        Goal::at_least("nvme_iops_vs_direct_qd32", 0.8, "ratio"),
        Goal::at_most("dma_exits", 0.0, "exits"),
    ],
    run,
};

/// QEMU's VT-d sends interrupts to identifiers of 8 bits only, unless KVM is there (`eim`): with the host in x2APIC
/// mode it cannot remap them.
const XAPIC: &str = "apic=xapic";
/// Blackouts in which transfers end.
const BLACKOUTS: usize = 1000;
const QUICK_BLACKOUTS: usize = 20;
const BLACKOUT_CPUS: u32 = 2;
/// Goals with Linux as guest.
const WITHOUT_LINUX: [&str; 4] =
    ["msi_delivery_instructions", "msi_delivery_halted_instructions", "dma_in_blackout", "register_writes_in_blackout"];
const UNITS: [(Iommu, &str); 2] = [(Iommu::Amd, "amd-vi"), (Iommu::Intel, "vt-d")];

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    deliveries(context, report)?;
    blackouts(context, report)?;
    register_writes(context, report)?;
    match silence::kernel(context) {
        Ok(_) => transfers(context, report).and_then(|()| disks(context, report)),
        Err(_) => {
            let mut of_linux = BENCH.goals.iter().filter(|goal| !WITHOUT_LINUX.contains(&goal.id));
            of_linux.try_for_each(|goal| report.leave_out(goal.id))
        }
    }
}

/// Interrupts by message, to a guest that executes instructions and to one that sleeps.
fn deliveries(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let (mut running, mut halted) = (Vec::new(), Vec::new());
    for (iommu, name) in UNITS {
        context.step(&format!("devices: interrupts, {name}"));
        let [awake, asleep] = messages::measure(context, iommu)?;
        let mut figure = |kind, value| report.figure(Figure::measured(name, kind, "instructions", [value]));
        figure("msi_delivery_least", awake.least)?;
        running.push(figure("msi_delivery", awake.median)?);
        figure("msi_delivery_halted_least", asleep.least)?;
        halted.push(figure("msi_delivery_halted", asleep.median)?);
    }
    report.goal("msi_delivery_instructions", largest(&running))?;
    report.goal("msi_delivery_halted_instructions", largest(&halted))
}

fn blackouts(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let wanted = if context.sizes.quick { QUICK_BLACKOUTS } else { BLACKOUTS };
    let mut right = Vec::new();
    for unit in UNITS {
        let ended = blackout::measure(context, unit, BLACKOUT_CPUS, wanted, Vec::new())?;
        for (metric, value) in
            [("transfers_in_blackouts", ended.counted), ("wrong", ended.wrong), ("between_transfers", ended.between)]
        {
            report.figure(Figure::measured(unit.1, metric, "updates", [value as f64]))?;
        }
        right.push(ended.counted.saturating_sub(ended.wrong));
    }
    let least = right.into_iter().min().unwrap_or(0);
    report.goal("dma_in_blackout", (least * BLACKOUTS) as f64 / wanted as f64)
}

fn register_writes(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let mut written = 0.0;
    for unit in UNITS {
        let traced = register_writes::measure(context, unit)?;
        report.figure(Figure::measured(unit.1, "traced_blackouts", "updates", [traced.blackouts]))?;
        report.figure(Figure::measured(unit.1, "writes_outside", "writes", [traced.outside]))?;
        report.figure(Figure::measured(unit.1, "other_writes", "writes", traced.others))?;
        written += report.figure(Figure::measured(unit.1, "register_writes", "writes", [traced.written]))?;
    }
    report.goal("register_writes_in_blackout", written)
}

fn transfers(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let (mut medians, mut highs, mut lost) = (Vec::new(), Vec::new(), 0.0);
    for (iommu, name) in UNITS {
        let windows = silence::measure(context, iommu, name)?;
        let excess = windows.excess_ms();
        medians.push(report.figure(Figure::measured(name, "transfer_pause", "ms", excess.clone()))?);
        highs.push(report.figure(Figure::measured(name, "transfer_pause_p95", "ms", [high(&excess)]))?);
        report.figure(Figure::measured(name, "silence_without_update", "ms", windows.without_ms.clone()))?;
        report.figure(Figure::measured(name, "silence_with_update", "ms", windows.with_ms.clone()))?;
        lost += report.figure(Figure::measured(name, "datagrams_lost", "datagrams", [windows.lost]))?;
    }
    report.goal("transfer_gap_ms", largest(&medians))?;
    report.goal("transfer_gap_p95_ms", largest(&highs))?;
    report.goal("datagrams_lost", lost)?;
    replaced::report(context, report, largest(&medians))
}

fn disks(context: &Context, report: &mut Report<'_>) -> Result<()> {
    const GOALS: [&str; 2] = ["nvme_iops_vs_direct_qd1", "nvme_iops_vs_direct_qd32"];
    let (mut lowest, mut faults) = ([f64::INFINITY; 2], 0.0);
    for (iommu, name) in UNITS {
        let rates = reads::measure(context, iommu, name)?;
        for (at, depth) in reads::DEPTHS.into_iter().enumerate() {
            let metric = format!("nvme_iops_qd{depth}");
            let (hosted, direct) = (&rates.hosted[at], &rates.direct[at]);
            report.figure(Figure::measured(name, &metric, "reads/s", hosted.clone()))?;
            report.figure(Figure::measured(format!("{name}, direct"), &metric, "reads/s", direct.clone()))?;
            let ratio = Figure::measured(name, format!("{metric}_vs_direct"), "ratio", ratios(hosted, direct));
            lowest[at] = report.figure(ratio)?.min(lowest[at]);
        }
        let per_read = |exits: u64| exits as f64 / rates.reads.max(1) as f64;
        report.figure(Figure::measured(name, "other_exits_per_read", "exits", [per_read(rates.others)]))?;
        faults += report.figure(Figure::measured(name, "dma_exits", "exits", [rates.faults as f64]))?;
    }
    GOALS.into_iter().zip(lowest).try_for_each(|(goal, ratio)| report.goal(goal, ratio))?;
    report.goal("dma_exits", faults)
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// The value below which 95 of 100 are.
fn high(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() * 95).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().or_else(|| median(values)).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_of_a_hundred_values_are_above_the_high_one() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(high(&values), 95.0);
        assert_eq!(high(&[3.0]), 3.0);
    }
}

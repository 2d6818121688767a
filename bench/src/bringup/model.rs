// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sizes that no machine here has, by the model in `sim` with the latencies that were published for a 28-thread
//! Haswell. Each run draws other latencies from the same ranges.

use anyhow::Result;
use bringup::Policy;
use bringup::startup::Reach;
use sim::wake::{Machine, Setup, linux_serial_ticks, simulate};

use crate::Context;
use crate::report::{Figure, Report};
use crate::statistics::ratios;

const CPUS: [u32; 5] = [28, 96, 128, 1024, 4096];
const WAYS: [(&str, Policy, Reach); 3] = [
    ("modelled serial", Policy::Serial, Reach::Each),
    ("modelled parallel", Policy::Parallel, Reach::Everyone),
    ("modelled park", Policy::Park, Reach::Each),
];

/// Computes the totals of every policy at every size, and the growth of those of parallel and park.
pub(super) fn compute(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let machine = Machine::haswell();
    let mut worst_growth = 0.0_f64;
    for (name, policy, reach) in WAYS {
        context.step(&format!("bringup: {name}"));
        let mut of_size = Vec::new();
        for cpus in CPUS {
            let runs: Vec<f64> = seeds(context).map(|seed| total(&machine, cpus, policy, reach, seed)).collect();
            report.figure(Figure::modelled(format!("{name} {cpus}"), "total", "cycles", runs.as_slice()))?;
            of_size.push((cpus, runs));
        }
        let runs_of = |wanted| of_size.iter().find(|(size, _)| *size == wanted).map_or(&[][..], |(_, runs)| runs);
        let growth = ratios(runs_of(4096), runs_of(128));
        let growth = report.figure(Figure::modelled(name, "growth_4096_vs_128", "ratio", growth))?;
        if policy != Policy::Serial {
            worst_growth = worst_growth.max(growth);
        }
    }
    for cpus in CPUS {
        let ticks = linux_serial_ticks(&machine, cpus) as f64;
        report.figure(Figure::modelled(format!("modelled linux 5.10 {cpus}"), "total", "cycles", [ticks]))?;
    }
    report.modelled_goal("modelled_growth_4096_vs_128", worst_growth)
}

fn seeds(context: &Context) -> impl Iterator<Item = u64> {
    1..=context.runs as u64
}

fn total(machine: &Machine, cpus: u32, policy: Policy, reach: Reach, seed: u64) -> f64 {
    let outcome = simulate(machine, &Setup { seed, ..Setup::new(cpus, policy, reach) });
    outcome.summary.total_ticks as f64
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `boot`: the time from the image's first instruction to the first guest's first instruction, by the host's timeline.
//!
//! Three parts: all baselines against all improvements, on machines of many sizes; on one size each improvement alone,
//! and all but each; and a host of stock Linux on the same machine, from its log's first line to the first instruction
//! of its guest under KVM. The emulator reserves memory lazily, so that a machine of 512 GiB takes what is written to.
//! Variants alternate. The first two parts count instructions, the third needs the wall clock: where instructions are
//! counted, an emulated machine's CPUs take turns, and Linux's wait for each other by spinning.

mod linux;
mod machine;

use anyhow::Result;

use self::machine::{Boot, Clock, boot};
use super::report::{Figure, Goal, Report};
use super::statistics::ratios;
use super::{Bench, Context};

pub(super) static BENCH: Bench = Bench {
    name: "boot",
    about: "from the first instruction to the first guest instruction: sizes of machines, baselines and improvements, \
            and Linux",
    goals: &[
        Goal::at_most("boot_512g_vs_1g", 1.1, RATIO),
        Goal::at_most("all_improved_vs_all_baseline_256g", 0.05, RATIO),
        Goal::at_most("boot_vs_linux612", 0.02, RATIO),
    ],
    run,
};

const RATIO: &str = "ratio";
/// Options of the host with their slow baseline and their quick alternative.
const CHOICES: &[Choice] = &[
    Choice { name: "smp", baseline: "smp=serial", improved: "smp=parallel" },
    Choice { name: "kick", baseline: "kick=late", improved: "kick=early" },
    Choice { name: "console", baseline: "console=byte", improved: "console=fifo" },
    Choice { name: "pci", baseline: "pci=all", improved: "pci=lazy" },
    Choice { name: "frames", baseline: "frames=eager", improved: "frames=extents" },
];
/// Sizes that are booted unless the command line names others.
const GIBIBYTES: &[u64] = &[1, 16, 64, 256, 512];
const CPUS: &[u32] = &[2, 8, 32];
const QUICK_GIBIBYTES: &[u64] = &[1, 512];
const QUICK_CPUS: &[u32] = &[8];
/// The sizes (GiB, CPUs) at which each improvement is measured alone, and at which goals are.
const ALONE: (u64, u32) = (256, 8);
const SMALL: (u64, u32) = (1, 8);
const LARGE: (u64, u32) = (512, 8);
const BESIDE_LINUX: (u64, u32) = (16, 16);

/// A decision with its two sides.
struct Choice {
    name: &'static str,
    baseline: &'static str,
    improved: &'static str,
}

/// Returns the options: the improved side of those choices that `is_improved` names, else the baseline.
fn options(is_improved: impl Fn(&str) -> bool) -> String {
    let decided = CHOICES.iter().map(|choice| if is_improved(choice.name) { choice.improved } else { choice.baseline });
    decided.collect::<Vec<_>>().join(" ")
}

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    sizes(context, report)?;
    if !context.sizes.quick {
        alone(context, report)?;
    }
    beside_linux(context, report)
}

/// Measures every size with all baselines and with all improvements.
fn sizes(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let chosen = &context.sizes;
    let (gibibytes, cpus) = if chosen.quick { (QUICK_GIBIBYTES, QUICK_CPUS) } else { (GIBIBYTES, CPUS) };
    let gibibytes = if chosen.gibibytes.is_empty() { gibibytes } else { &chosen.gibibytes };
    let cpus = if chosen.cpus.is_empty() { cpus } else { &chosen.cpus };
    let variants = [("baseline", options(|_| false)), ("improved", options(|_| true))];
    for &count in cpus {
        // All memory sizes of one run stand side by side, so that their quotients are of neighbours.
        let mut measured = vec![[Vec::new(), Vec::new()]; gibibytes.len()];
        for run in 1..=context.runs {
            for (&size, of_size) in gibibytes.iter().zip(&mut measured) {
                for ((name, options), boots) in variants.iter().zip(of_size) {
                    context.step(&format!("boot: {size} GiB, {count} CPUs, run {run}, {name}"));
                    boots.push(boot(context, (size, count), Clock::Instructions, options)?);
                }
            }
        }
        for (&size, of_size) in gibibytes.iter().zip(&measured) {
            for ((name, _), boots) in variants.iter().zip(of_size) {
                report_boots(report, &format!("{name} {size}G {count}"), boots)?;
            }
            let [baseline, improved] = of_size;
            let quotient = quotient(report, &format!("improved/baseline {size}G {count}"), improved, baseline)?;
            if (size, count) == ALONE {
                report.goal("all_improved_vs_all_baseline_256g", quotient)?;
            }
        }
        compare_memory(report, gibibytes, count, &measured)?;
    }
    Ok(())
}

/// Compares the largest memory with the smallest.
fn compare_memory(report: &mut Report<'_>, sizes: &[u64], cpus: u32, measured: &[[Vec<Boot>; 2]]) -> Result<()> {
    let of = |(size, count): (u64, u32)| {
        let place = sizes.iter().position(|candidate| *candidate == size).filter(|_| count == cpus)?;
        measured.get(place).map(|[_, improved]| improved)
    };
    if let (Some(small), Some(large)) = (of(SMALL), of(LARGE)) {
        let quotient = quotient(report, "improved 512G/1G 8", large, small)?;
        report.goal("boot_512g_vs_1g", quotient)?;
    }
    Ok(())
}

/// Measures each improvement twice: added to the baselines, and removed from all improvements.
/// The first shows its gain on a slow host, the second its gain on a quick one.
fn alone(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let mut all = vec![("all baseline".to_owned(), options(|_| false)), ("all improved".to_owned(), options(|_| true))];
    for Choice { name: this, baseline, improved } in CHOICES {
        all.push((format!("only {improved}"), options(|name| name == *this)));
        all.push((format!("all but {baseline}"), options(|name| name != *this)));
    }
    let mut measured: Vec<Vec<Boot>> = vec![Vec::new(); all.len()];
    for run in 1..=context.runs {
        for ((name, options), boots) in all.iter().zip(&mut measured) {
            context.step(&format!("boot: {name}, run {run} of {}", context.runs));
            boots.push(boot(context, ALONE, Clock::Instructions, options)?);
        }
    }
    let size = format!("{}G {}", ALONE.0, ALONE.1);
    for ((name, _), boots) in all.iter().zip(&measured) {
        report_boots(report, &format!("{name} {size}"), boots)?;
    }
    let (baseline, improved) = (&measured[0], &measured[1]);
    for ((name, _), boots) in all.iter().zip(&measured).skip(2) {
        if name.starts_with("only") {
            quotient(report, &format!("{name}/all baseline {size}"), boots, baseline)?;
        } else {
            quotient(report, &format!("all improved/{name} {size}"), improved, boots)?;
        }
    }
    Ok(())
}

fn beside_linux(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let (mut boots, mut kernels) = (Vec::new(), Vec::new());
    let (gibibytes, cpus) = BESIDE_LINUX;
    for run in 1..=context.runs {
        context.step(&format!("boot: beside Linux, run {run} of {}, Baton", context.runs));
        boots.push(boot(context, BESIDE_LINUX, Clock::Wall, &options(|_| true))?);
        context.step(&format!("boot: beside Linux, run {run} of {}, Linux 6.12", context.runs));
        kernels.push(linux::boot(context, gibibytes, cpus)?);
    }
    let variant = format!("{gibibytes}G {cpus}");
    report_boots(report, &format!("improved {variant}, wall clock"), &boots)?;
    report.figure(Figure::measured(
        format!("linux 6.12 {variant}"),
        "first_line_to_first_guest",
        "ms",
        kernels.as_slice(),
    ))?;
    let baton: Vec<f64> = boots.iter().map(|boot| boot.milliseconds).collect();
    let quotients = ratios(&baton, &kernels);
    let quotient =
        report.figure(Figure::measured(format!("baton/linux 6.12 {variant}"), "boot_ratio", RATIO, quotients))?;
    report.goal("boot_vs_linux612", quotient)
}

/// Reports the whole time, and its longest parts.
fn report_boots(report: &mut Report<'_>, variant: &str, boots: &[Boot]) -> Result<()> {
    let values: Vec<f64> = boots.iter().map(|boot| boot.milliseconds).collect();
    report.figure(Figure::measured(variant, "to_first_guest", "ms", values))?;
    for (name, _) in boots.first().into_iter().flat_map(|boot| &boot.parts) {
        let of = |boot: &Boot| boot.parts.iter().find(|(other, _)| other == name).map_or(0.0, |(_, took)| *took);
        let values: Vec<f64> = boots.iter().map(of).collect();
        report.figure(Figure::measured(variant, name, "ms", values))?;
    }
    Ok(())
}

fn quotient(report: &mut Report<'_>, variant: &str, numerators: &[Boot], denominators: &[Boot]) -> Result<f64> {
    let values = |boots: &[Boot]| boots.iter().map(|boot| boot.milliseconds).collect::<Vec<f64>>();
    report.figure(Figure::measured(variant, "boot_ratio", RATIO, ratios(&values(numerators), &values(denominators))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_improvement_alone_leaves_all_else_the_baseline() {
        assert_eq!(options(|_| false), "smp=serial kick=late console=byte pci=all frames=eager");
        assert_eq!(options(|name| name == "kick"), "smp=serial kick=early console=byte pci=all frames=eager");
    }

    #[test]
    fn the_goals_sizes_are_among_those_that_are_booted() {
        for (gibibytes, cpus) in [ALONE, SMALL, LARGE] {
            assert!(GIBIBYTES.contains(&gibibytes) && CPUS.contains(&cpus));
        }
        assert!(QUICK_GIBIBYTES.contains(&SMALL.0) && QUICK_GIBIBYTES.contains(&LARGE.0) && QUICK_CPUS.contains(&8));
    }
}

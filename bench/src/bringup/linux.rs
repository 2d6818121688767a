// SPDX-License-Identifier: MIT OR Apache-2.0
//! The peers: stock kernels directly on the same machine, from "Bringing up secondary CPUs" to "Brought up" by the time
//! stamps of their log. 6.1 brings CPUs up one after the other, 6.12 all at once; those that wait spin in both.

use anyhow::{Context as _, Result, ensure};

use super::boot;
use crate::Context;
use crate::direct::{self, Direct, time_stamp};
use crate::report::{Figure, Report};
use crate::statistics::ratios;

const CPUS: [u32; 3] = [2, 8, 16];
const GOAL_CPUS: u32 = 16;
const KERNELS: [&str; 2] = ["6.1", "6.12"];

/// Measures Baton and both kernels, alternating.
pub(super) fn compare(context: &Context, report: &mut Report<'_>) -> Result<()> {
    for cpus in CPUS {
        let mut baton = Vec::new();
        let mut kernels = [Vec::new(), Vec::new()];
        for run in 1..=context.runs {
            let step = |system| context.step(&format!("bringup: {cpus} CPUs, run {run} of {}, {system}", context.runs));
            step("Baton");
            baton.push(boot::measure(context, cpus, "smp=parallel kick=late")?.microseconds / 1000.0);
            for (kernel, runs) in KERNELS.iter().zip(&mut kernels) {
                step(kernel);
                runs.push(measure(context, kernel, cpus)?);
            }
        }
        for (kernel, runs) in KERNELS.iter().zip(&kernels) {
            report.figure(Figure::measured(format!("linux {kernel} {cpus}"), "total_ms", "ms", runs.as_slice()))?;
        }
        report.figure(Figure::measured(format!("parallel {cpus}"), "total_ms", "ms", baton.as_slice()))?;
        for (kernel, runs) in KERNELS.iter().zip(&kernels) {
            let variant = format!("parallel/linux {kernel} {cpus}");
            let ratio = report.figure(Figure::measured(variant, "total_ratio", "ratio", ratios(&baton, runs)))?;
            if (*kernel, cpus) == ("6.12", GOAL_CPUS) {
                report.goal("parallel_vs_linux612_16", ratio)?;
            }
        }
    }
    Ok(())
}

/// Returns the milliseconds between the kernel's two lines.
fn measure(context: &Context, kernel: &str, cpus: u32) -> Result<f64> {
    let image = context.made(&format!("target/kernels/{kernel}/vmlinuz"))?;
    let mut command = direct::command(context, cpus, "1024M");
    command.arg("-kernel").arg(image).args(["-append", "console=ttyS0 printk.time=1 panic=-1"]);
    let mut began = None;
    let last = Direct::start(context, command)?.wait(&format!("{cpus} CPUs under Linux {kernel}"), |_, line| {
        if line.contains("smp: Bringing up secondary CPUs") {
            began = time_stamp(line);
        }
        line.contains("smp: Brought up").then(|| line.to_owned())
    })?;
    ensure!(last.contains(&format!("{cpus} CPUs")), "Linux {kernel} did not bring up {cpus} CPUs: {last}");
    let seconds = time_stamp(&last).zip(began).map(|(end, start)| end - start);
    Ok(seconds.with_context(|| format!("the line {last:?} or the one before it has no time stamp"))? * 1e3)
}

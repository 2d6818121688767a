// SPDX-License-Identifier: MIT OR Apache-2.0
//! The peers: stock kernels directly on the same machine, from "Bringing up secondary CPUs" to "Brought up" by the time
//! stamps of their log. 6.1 brings processors up one after the other, 6.12 all at once; those that wait spin in both.

use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use lab::{Line, Process};

use super::boot;
use crate::Context;
use crate::report::{Figure, Report};
use crate::statistics::ratios;

const PROCESSORS: [u32; 3] = [2, 8, 16];
const GOAL_PROCESSORS: u32 = 16;
const KERNELS: [&str; 2] = ["6.1", "6.12"];

/// Baton and both kernels, alternating.
pub(super) fn compare(context: &Context, report: &mut Report<'_>) -> Result<()> {
    for processors in PROCESSORS {
        let mut baton = Vec::new();
        let mut kernels = [Vec::new(), Vec::new()];
        for run in 1..=context.runs {
            let step =
                |who| context.step(&format!("bringup: {processors} processors, run {run} of {}, {who}", context.runs));
            step("Baton");
            baton.push(boot::measure(context, processors, "smp=parallel kick=late")?.microseconds / 1000.0);
            for (kernel, runs) in KERNELS.iter().zip(&mut kernels) {
                step(kernel);
                runs.push(measure(context, kernel, processors)?);
            }
        }
        for (kernel, runs) in KERNELS.iter().zip(&kernels) {
            report.figure(Figure::measured(
                format!("linux {kernel} {processors}"),
                "total_ms",
                "ms",
                runs.as_slice(),
            ))?;
        }
        report.figure(Figure::measured(format!("parallel {processors}"), "total_ms", "ms", baton.as_slice()))?;
        for (kernel, runs) in KERNELS.iter().zip(&kernels) {
            let variant = format!("parallel/linux {kernel} {processors}");
            let ratio = report.figure(Figure::measured(variant, "total_ratio", "ratio", ratios(&baton, runs)))?;
            if (*kernel, processors) == ("6.12", GOAL_PROCESSORS) {
                report.goal("parallel_vs_linux612_16", ratio)?;
            }
        }
    }
    Ok(())
}

/// Milliseconds between the kernel's two lines.
fn measure(context: &Context, kernel: &str, processors: u32) -> Result<f64> {
    let image = context.made(&format!("target/kernels/{kernel}/vmlinuz"))?;
    let (sender, lines) = mpsc::channel();
    let on_line = move |line: Line| drop(sender.send(line.text));
    let _process = Process::spawn(command(&context.qemu, &image, processors), on_line)
        .with_context(|| format!("{} cannot be started", context.qemu.display()))?;
    let started = Instant::now();
    let (mut began, mut last) = (None, String::new());
    while let Some(left) = context.timeout.checked_sub(started.elapsed()) {
        let Ok(line) = lines.recv_timeout(left.max(Duration::from_millis(1))) else { break };
        if line.contains("smp: Bringing up secondary CPUs") {
            began = stamp(&line);
        } else if line.contains("smp: Brought up") {
            let ended = stamp(&line).filter(|_| line.contains(&format!("{processors} CPUs")));
            let (began, ended) =
                began.zip(ended).with_context(|| format!("the kernel's line {line:?} is not understood"))?;
            return Ok((ended - began) * 1e3);
        }
        last = line;
    }
    bail!("Linux {kernel} did not bring up {processors} processors; its last line was {last:?}")
}

/// Seconds, of `[    0.829140] …`.
fn stamp(line: &str) -> Option<f64> {
    line.split_once('[')?.1.split_once(']')?.0.trim().parse().ok()
}

/// The machine is the lab's, with the kernel in Baton's place.
fn command(qemu: &Path, kernel: &Path, processors: u32) -> Command {
    let mut command = Command::new(qemu);
    command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "q35"]);
    command.args(["-accel", "tcg", "-cpu", "max", "-smp", &processors.to_string(), "-m", "1024M"]);
    command.arg("-kernel").arg(kernel).args(["-append", "console=ttyS0 printk.time=1 panic=-1"]);
    command.args(["-chardev", "stdio,id=log,signal=off", "-serial", "chardev:log"]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stamps_are_read_from_the_kernels_lines() {
        assert_eq!(stamp("[    0.829140] smp: Bringing up secondary CPUs ..."), Some(0.829140));
        assert_eq!(stamp("smp: Brought up 1 node, 16 CPUs"), None);
    }
}

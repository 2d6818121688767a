// SPDX-License-Identifier: MIT OR Apache-2.0
//! One boot of a host without guests, and what its log says of its bring-up.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use baton::config::{Config, Guest, Host, Image};
use baton::size::Size;
use bundle::{OnPanic, Pmu, WhenDone};
use lab::{Accelerator, Happening, Lab, Machine, RunDir, What};

use crate::Context;
use crate::statistics::median;

const MEMORY: Size = Size::mebibytes(1024);
const GUEST_MEMORY: Size = Size::mebibytes(16);
/// What the host's log calls the phases, in its order.
pub(super) const PHASES: [&str; 4] = ["first-sign", "initialisation", "tsc-sync", "online"];

/// One host's bring-up, in cycles.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct BringUp {
    /// From the first kick to the last arrival.
    pub total: f64,
    pub microseconds: f64,
    pub kicks: f64,
    pub waits: f64,
    pub last_first_sign: f64,
    /// Each processor's four waits.
    pub phases: Vec<[f64; 4]>,
}

impl BringUp {
    /// What all processors were waited for in this phase.
    pub fn sum_of(&self, phase: usize) -> f64 {
        self.phases.iter().map(|phases| phases[phase]).sum()
    }

    /// What the processor in the middle was waited for.
    pub fn median_of(&self, phase: usize) -> f64 {
        median(&self.phases.iter().map(|phases| phases[phase]).collect::<Vec<f64>>()).unwrap_or(0.0)
    }
}

/// Boots a host without guests, and reads what it says of its bring-up.
pub(super) fn measure(context: &Context, processors: u32, options: &str) -> Result<BringUp> {
    let folder = tempfile::tempdir().context("no temporary folder can be made")?;
    watch(context, machine(context, processors, None, options), &folder.path().join("run"), 1)
}

/// Boots a host whose guest ends at once, has it restarted warm, and reads what the second image says of its bring-up.
pub(super) fn measure_restarted(context: &Context, processors: u32, options: &str) -> Result<BringUp> {
    let folder = tempfile::tempdir().context("no temporary folder can be made")?;
    let bundle = folder.path().join("bundle.cpio");
    let host = Host {
        cpus: processors,
        memory: MEMORY,
        when_done: WhenDone::DebugExit,
        cmdline: String::new(),
        image: Image::Usual,
    };
    let config = Config {
        path: PathBuf::from("bench"),
        trusted_keys: vec![],
        allow_downgrade: None,
        host,
        guests: vec![guest(context)?],
    };
    std::fs::write(&bundle, baton::bundle::build(&config, Some(&context.image))?)?;
    let machine = machine(context, processors, Some(bundle), &format!("{options} restart-after-guests=2"));
    watch(context, machine, &folder.path().join("run"), 2)
}

/// One that ends as soon as it has looked at its memory.
fn guest(context: &Context) -> Result<Guest> {
    Ok(Guest {
        name: "keeper".to_owned(),
        kernel: context.made("target/guests/keeper.elf")?,
        initrd: None,
        modules: Vec::new(),
        cmdline: "do=fresh".to_owned(),
        vcpus: 1,
        memory: GUEST_MEMORY,
        debug_exit: true,
        weight: 100,
        on_panic: OnPanic::default(),
        hung_s: 0,
        pmu: Pmu::Off,
        pmu_events: None,
        autostart: true,
    })
}

fn machine(context: &Context, processors: u32, bundle: Option<PathBuf>, options: &str) -> Machine {
    Machine {
        qemu: context.qemu.clone(),
        accelerator: Accelerator::Tcg,
        cpus: processors,
        memory: MEMORY,
        image: context.image.clone(),
        bundle,
        disc: None,
        cmdline: format!("{options} log=debug"),
        extra: Vec::new(),
    }
}

/// Follows the machine's log to the bring-up of its `image`th image.
fn watch(context: &Context, machine: Machine, run: &Path, image: usize) -> Result<BringUp> {
    let mut lab = Lab::start(&machine, RunDir::take_at(run)?)?;
    let (mut lines, mut images) = (Vec::new(), 0);
    while let Some(left) = context.timeout.checked_sub(lab.elapsed()) {
        let Some(Happening { what, .. }) = lab.next(left) else { break };
        let What::HostLine(line) = what else { continue };
        lines.push(line);
        if let Some(found) = read(&lines, machine.cpus - 1)? {
            images += 1;
            if images == image {
                lab.kill();
                return Ok(found);
            }
            lines.clear();
        }
    }
    let cpus = machine.cpus;
    bail!("a host of {cpus} processors did not say how it brought them up; its lines were\n{}", lines.join("\n"))
}

/// The figures, once the last of their lines is there; an error if a processor is missing.
fn read(lines: &[String], others: u32) -> Result<Option<BringUp>> {
    let Some(last) = lines.last().and_then(|line| line.split_once("bring-up: ")) else { return Ok(None) };
    let numbers = numbers(last.1);
    let &[online, total, microseconds, kicks, waits, last_first_sign] = numbers.as_slice() else {
        bail!("the host's line {:?} is not understood", last.1)
    };
    if online != f64::from(others) {
        bail!("{online} of {others} processors came online:\n{}", lines.join("\n"));
    }
    let each = lines.iter().filter(|line| line.contains(": first-sign ")).map(|line| read_phases(line));
    let phases = each.collect::<Result<Vec<_>>>()?;
    Ok(Some(BringUp { total, microseconds, kicks, waits, last_first_sign, phases }))
}

fn read_phases(line: &str) -> Result<[f64; 4]> {
    let mut found = [0.0; 4];
    for (found, phase) in found.iter_mut().zip(PHASES) {
        let value = line.split_once(phase).and_then(|(_, rest)| rest.split_whitespace().next()?.parse::<f64>().ok());
        *found = value.with_context(|| format!("the host's line {line:?} is not understood"))?;
    }
    Ok(found)
}

fn numbers(text: &str) -> Vec<f64> {
    text.split(|letter: char| !letter.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EACH: &str = "[ 0.1] cpu0 debug processors: bring-up 1: first-sign 10 initialisation 20 tsc-sync 30 online \
                        40 cycles; tsc ClockSync { outcome: Agrees, skew: 0, error: 7 }";
    const ALL: &str = "[ 0.1] cpu0 info  processors: bring-up: 1 processors in 1000 cycles (3 us), of which kicks 5 \
                       and waits 900, for the last first sign 90";

    #[test]
    fn the_hosts_lines_give_total_kicks_and_phases() {
        let lines = [EACH.to_owned(), ALL.to_owned()];
        let found = read(&lines, 1).unwrap().unwrap();
        let phases = vec![[10.0, 20.0, 30.0, 40.0]];
        let (total, microseconds, kicks, waits, last_first_sign) = (1000.0, 3.0, 5.0, 900.0, 90.0);
        assert_eq!(found, BringUp { total, microseconds, kicks, waits, last_first_sign, phases });
        assert_eq!((found.sum_of(1), found.median_of(3)), (20.0, 40.0));
        assert_eq!(read(&lines[..1], 1).unwrap(), None, "not before the last line");
    }

    #[test]
    fn a_processor_that_is_missing_is_an_error() {
        assert!(read(&[ALL.to_owned()], 2).unwrap_err().to_string().contains("1 of 2 processors"));
    }
}

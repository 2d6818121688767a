// SPDX-License-Identifier: MIT OR Apache-2.0
//! One boot of a host without guests, and the figures of its bring-up from its log.

use anyhow::{Context as _, Result, bail};
use baton::config::Image;
use baton::size::Size;
use bundle::WhenDone;
use lab::What;

use crate::Context;
use crate::setup::{HostSetup, keeper};
use crate::statistics::median;

const MEMORY: Size = Size::mebibytes(1024);
const GUEST_MEMORY: Size = Size::mebibytes(16);
/// The names of the phases in the host's log, in its order.
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
    /// Each CPU's four waits.
    pub phases: Vec<[f64; 4]>,
}

impl BringUp {
    /// Returns the cycles of waits for all CPUs in this phase.
    pub fn sum_of(&self, phase: usize) -> f64 {
        self.phases.iter().map(|phases| phases[phase]).sum()
    }

    /// Returns the median of the waits in this phase.
    pub fn median_of(&self, phase: usize) -> f64 {
        median(&self.phases.iter().map(|phases| phases[phase]).collect::<Vec<f64>>()).unwrap_or(0.0)
    }
}

/// Boots a host without guests, and reads its bring-up from its log.
pub(super) fn measure(context: &Context, cpus: u32, options: &str) -> Result<BringUp> {
    watch(context, &setup(cpus, options), 1)
}

/// Boots a host that restarts warm after its guest has ended, and reads the second image's bring-up from its log.
pub(super) fn measure_restarted(context: &Context, cpus: u32, options: &str) -> Result<BringUp> {
    let restarted = HostSetup {
        guests: vec![keeper(context, "do=fresh", GUEST_MEMORY)?],
        when_done: WhenDone::DebugExit,
        image: Image::Usual,
        ..setup(cpus, &format!("{options} restart-after-guests=2"))
    };
    watch(context, &restarted, 2)
}

fn setup(cpus: u32, options: &str) -> HostSetup {
    HostSetup { cpus, options: format!("{options} log=debug"), ..HostSetup::new(MEMORY) }
}

/// Follows the machine's log to the bring-up of its `image`th image.
fn watch(context: &Context, setup: &HostSetup, image: usize) -> Result<BringUp> {
    let (mut lines, mut images) = (Vec::new(), 0);
    setup.start(context)?.wait(context.timeout, &format!("the bring-up of {} CPUs", setup.cpus), |what| {
        let What::HostLine(line) = what else { return None };
        lines.push(line.clone());
        let found = read(&lines, setup.cpus - 1).transpose()?;
        images += 1;
        lines.clear();
        (images == image || found.is_err()).then_some(found)
    })?
}

/// The figures, once the last of their lines is there; an error if a CPU is missing.
fn read(lines: &[String], others: u32) -> Result<Option<BringUp>> {
    let Some(last) = lines.last().and_then(|line| line.split_once("bring-up: ")) else { return Ok(None) };
    let numbers = numbers(last.1);
    let &[online, total, microseconds, kicks, waits, last_first_sign] = numbers.as_slice() else {
        bail!("the host's line {:?} is not understood", last.1)
    };
    if online != f64::from(others) {
        bail!("{online} of {others} CPUs came online:\n{}", lines.join("\n"));
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

    const EACH: &str = "[ 0.1] cpu0 debug cpus: CPU 1: bring-up waits: first-sign 10 initialisation 20 tsc-sync 30 \
                        online 40 cycles; TSC ClockSync { outcome: Agrees, skew: 0, error: 7 }";
    const ALL: &str = "[ 0.1] cpu0 info  cpus: bring-up: 1 CPUs online after 1000 cycles (3 us): kicks 5, \
                       waits 900, wait for the last CPU's first sign 90 cycles";

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
    fn a_cpu_that_is_missing_is_an_error() {
        assert!(read(&[ALL.to_owned()], 2).unwrap_err().to_string().contains("1 of 2 CPUs"));
    }
}

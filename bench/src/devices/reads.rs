// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads of 4 KiB at random places of a guest's own NVMe disk, beside those of the same Linux directly on the emulator,
//! with its own IOMMU driver in strict mode.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use baton::config::{Device, Guest, Iommu, Nvme, Storage};
use baton::drivers::Drivers;
use baton::size::Size;
use bundle::AssignedConfig;
use lab::{Hardware, What};
use wire::ExitKind;

use super::{XAPIC, silence};
use crate::Context;
use crate::direct::{self, Direct};
use crate::rounds::{END, Round, WRONG};
use crate::setup::{HostSetup, Started, guest, temporary_folder};
use crate::statistics::median;

/// Reads under way at a time.
pub(super) const DEPTHS: [u64; 2] = [1, 32];
/// How often a machine reads with each depth, in turn: its figure is their median.
const ROUNDS: usize = 3;
const ROUND_MS: u64 = 2000;
const MEMORY: Size = Size::mebibytes(768);
const GUEST_MEMORY: Size = Size::mebibytes(384);
const DISK: Size = Size::mebibytes(64);
const NAME: &str = "linux";
/// On both sides; a guest has no IOMMU, and ignores all but the first two.
const COMMAND_LINE: &str = "console=ttyS0 loglevel=5 intel_iommu=on iommu.strict=1 iommu=nopt";
/// The agent's line before reads.
const BEGIN: &str = "reads begin depth=";

/// Reads in a second with each of [`DEPTHS`], one value per run.
#[derive(Debug, Default)]
pub(super) struct Rates {
    pub hosted: [Vec<f64>; 2],
    pub direct: [Vec<f64>; 2],
    /// The guest's exits at accesses to memory while it read, of all runs.
    pub faults: u64,
    /// Its reads.
    pub reads: u64,
    /// Its other exits while it read.
    pub others: u64,
}

/// Measures both sides in turn.
pub(super) fn measure(context: &Context, iommu: Iommu, name: &str) -> Result<Rates> {
    let mut rates = Rates::default();
    for run in 1..=context.runs {
        let step = |side: &str| context.step(&format!("devices: {name}: reads, run {run} of {}, {side}", context.runs));
        step("guest");
        let hosted = hosted(context, iommu, &mut rates)?;
        step("directly on the emulator");
        let direct = directly(context, iommu)?;
        rates.hosted.iter_mut().zip(hosted).for_each(|(runs, rate)| runs.push(rate));
        rates.direct.iter_mut().zip(direct).for_each(|(runs, rate)| runs.push(rate));
    }
    Ok(rates)
}

/// The agent's tasks.
fn tasks() -> String {
    let round = DEPTHS.map(|depth| format!("reads:{depth}:{ROUND_MS}")).join(",");
    format!("agent=drivers,{},wait", [round.as_str()].repeat(ROUNDS).join(","))
}

fn disk() -> Vec<Device> {
    vec![Device::Nvme(Nvme { storage: Storage::Temporary(DISK), serial: "reads".into(), virtual_functions: 0 })]
}

fn drivers(kernel: &Path) -> Result<Vec<u8>> {
    Drivers::of(kernel.parent().unwrap_or(kernel))?.archive(&["nvme"])
}

fn hosted(context: &Context, iommu: Iommu, rates: &mut Rates) -> Result<[f64; 2]> {
    let (folder, kernel) = (temporary_folder()?, silence::kernel(context)?);
    let archive = folder.path().join("drivers.cpio");
    fs::write(&archive, drivers(&kernel)?)?;
    let linux = Guest {
        initrd: Some(context.made("target/guests/initramfs.cpio")?),
        modules: vec![archive],
        cmdline: format!("{COMMAND_LINE} {}", tasks()),
        functions: vec![AssignedConfig {
            selector: "1b36:0010".to_owned(),
            without_reset: false,
            gsi: None,
            virtual_functions: 0,
        }],
        ..guest(NAME, kernel, GUEST_MEMORY)
    };
    let options = XAPIC.to_owned();
    let setup = HostSetup { guests: vec![linux], options, iommu, devices: disk(), ..HostSetup::new(MEMORY) };
    let (mut host, mut console, mut rounds) = (setup.start(context)?, String::new(), Vec::new());
    for number in 0..ROUNDS * DEPTHS.len() {
        line(context, &mut host, &mut console, BEGIN, number)?;
        let before = exits(&host)?;
        let round = Round::parse(&line(context, &mut host, &mut console, END, number)?)?;
        let after = exits(&host)?;
        rates.faults += after.faults - before.faults;
        rates.others += after.others - before.others;
        rates.reads += round.count;
        rounds.push(round);
    }
    medians(&rounds)
}

/// Waits for the line of this number, from 0, that begins so.
fn line(context: &Context, host: &mut Started, console: &mut String, beginning: &str, number: usize) -> Result<String> {
    let found = |console: &str| {
        let whole = &console[..console.rfind('\n').unwrap_or(0)];
        let is_wanted = |line: &&str| line.starts_with(beginning) || line.starts_with(WRONG);
        whole.lines().filter(is_wanted).nth(number).map(str::to_owned)
    };
    if let Some(line) = found(console) {
        return Ok(line);
    }
    host.wait(context.timeout, "the guest's next line about its reads", |what| {
        let What::Console { bytes, .. } = what else { return None };
        console.push_str(&String::from_utf8_lossy(bytes));
        found(console)
    })
}

/// A guest's exits so far: at accesses to memory that the nested tables do not map, and all others.
struct Exits {
    faults: u64,
    others: u64,
}

fn exits(host: &Started) -> Result<Exits> {
    let vms = host.lab.client()?.vms()?;
    let linux = vms.into_iter().find(|vm| vm.name == NAME).context("the host does not list its guest")?;
    let faults: u64 = linux.exits.iter().filter(|exit| exit.kind == ExitKind::MemoryFault).map(|exit| exit.count).sum();
    Ok(Exits { faults, others: linux.exits_total - faults })
}

fn directly(context: &Context, iommu: Iommu) -> Result<[f64; 2]> {
    let (folder, kernel) = (temporary_folder()?, silence::kernel(context)?);
    let initrd = folder.path().join("initrd");
    fs::write(&initrd, [fs::read(context.made("target/guests/initramfs.cpio")?)?, drivers(&kernel)?].concat())?;
    let hardware = Hardware::place(iommu, &disk(), &context.qemu, folder.path())?;
    // Where QEMU's AMD-Vi remaps interrupts, none of the I/O APIC reaches stock Linux: neither the serial port's,
    // without which the agent's lines stay in the machine, nor the 8254's.
    let hardware = if iommu == Iommu::Amd { hardware.without_remapping() } else { hardware };
    let mut command = direct::command(context, 1, &format!("{}M", GUEST_MEMORY.bytes >> 20));
    command.args(hardware.arguments()).arg("-kernel").arg(kernel).arg("-initrd").arg(initrd);
    command.args(["-append", &format!("{COMMAND_LINE} {}", tasks())]);
    let mut machine = Direct::start(context, command)?;
    let mut rounds = Vec::new();
    while rounds.len() < ROUNDS * DEPTHS.len() {
        let is_wanted = |line: &str| line.starts_with(END) || line.starts_with(WRONG);
        let line = machine.wait("the next line about its reads", |_, line| is_wanted(line).then(|| line.to_owned()))?;
        rounds.push(Round::parse(&line)?);
    }
    medians(&rounds)
}

/// Returns the median rate for each of [`DEPTHS`].
fn medians(rounds: &[Round]) -> Result<[f64; 2]> {
    let rate = |depth: u64| {
        let of_depth = rounds.iter().filter(|round| round.depth == depth);
        let rates: Vec<f64> = of_depth.map(|round| round.rate()).collect();
        median(&rates).with_context(|| format!("no reads with depth {depth}"))
    };
    Ok([rate(DEPTHS[0])?, rate(DEPTHS[1])?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machines_rate_is_the_median_of_its_rounds() {
        let round = |depth, count| Round { depth, us: 500_000, count };
        let rounds = [round(1, 10), round(32, 50), round(1, 30), round(32, 70), round(1, 20), round(32, 60)];
        assert_eq!(medians(&rounds).expect("both depths"), [40.0, 120.0]);
        assert!(medians(&rounds[..1]).is_err());
    }

    #[test]
    fn depths_take_turns() {
        let tasks = tasks();
        assert!(tasks.starts_with("agent=drivers,reads:1:2000,reads:32:2000,reads:1:2000,"), "{tasks}");
        assert!(tasks.ends_with(",reads:1:2000,reads:32:2000,wait"), "{tasks}");
    }
}

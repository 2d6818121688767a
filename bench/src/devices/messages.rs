// SPDX-License-Identifier: MIT OR Apache-2.0
//! Message signalled interrupts, from the device's write to the guest's handler.

use anyhow::{Context as _, Result, ensure};
use baton::config::{Device, Guest, Iommu};
use baton::size::Size;
use bundle::AssignedConfig;
use lab::{Accelerator, What};

use super::XAPIC;
use crate::Context;
use crate::exits::Clock;
use crate::setup::{HostSetup, guest};

const MEMORY: Size = Size::mebibytes(256);
const GUEST_MEMORY: Size = Size::mebibytes(16);
const EDU: &str = "1234:11e8";
/// So many times the usual limit is waited: the emulator executes each instruction by itself.
const PATIENCE: u32 = 5;
/// The beginnings of the guest's lines with the times.
const LINES: [&str; 2] = ["edu: msi running ", "edu: msi halted-by-timer "];

/// Instructions of one delivery.
pub(super) struct Row {
    pub least: f64,
    pub median: f64,
}

/// Measures a thousand deliveries to a guest that executes instructions, and a thousand to one that sleeps in HLT.
pub(super) fn measure(context: &Context, iommu: Iommu) -> Result<[Row; 2]> {
    let functions =
        vec![AssignedConfig { selector: EDU.to_owned(), without_reset: true, gsi: None, virtual_functions: 0 }];
    let kernel = context.made("target/guests/edu.elf")?;
    let edu = Guest { cmdline: "do=msi,msi-timed".to_owned(), functions, ..guest("edu", kernel, GUEST_MEMORY) };
    let setup = HostSetup {
        guests: vec![edu],
        iommu,
        devices: vec![Device::Edu],
        options: format!("mitigations=off {XAPIC}"),
        extra: Clock::Instructions.arguments(),
        accelerator: accelerator(context)?,
        ..HostSetup::new(MEMORY)
    };
    let mut console = String::new();
    let lines = setup.start(context)?.wait(PATIENCE * context.timeout, "the guest's lines with the times", |what| {
        if let What::Console { bytes, .. } = what {
            console += &String::from_utf8_lossy(bytes);
        }
        let [running, halted] = LINES.map(|name| line(&console, name));
        Some([running?, halted?])
    })?;
    let [running, halted] = lines.map(|line| row(&line));
    Ok([running?, halted?])
}

/// The one that counts each instruction that is executed, and no other. Before QEMU 8.1 that is the usual one.
fn accelerator(context: &Context) -> Result<Accelerator> {
    const STEPPED_SINCE: (u32, u32) = (8, 1);
    let is_old = lab::version_of(&context.qemu)? < STEPPED_SINCE;
    Ok(if is_old { Accelerator::Tcg } else { Accelerator::TcgStepped })
}

/// The guest's line with times that begins so.
fn line(console: &str, name: &str) -> Option<String> {
    console.lines().find(|line| line.starts_with(name) && line.contains("median=")).map(str::to_owned)
}

fn row(line: &str) -> Result<Row> {
    ensure!(line.contains("n=1000 came=1000"), "not each interrupt came once: {line}");
    Ok(Row { least: number(line, "min=")?, median: number(line, "median=")? })
}

fn number(line: &str, name: &str) -> Result<f64> {
    let value = line.split_whitespace().find_map(|word| word.strip_prefix(name)?.parse().ok());
    value.with_context(|| format!("the guest `edu` and this tool are of different releases: no {name} in {line:?}"))
}

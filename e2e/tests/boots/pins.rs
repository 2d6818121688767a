// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions of guests that interrupt by their INTx lines.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use baton::config::{Device, Guest, Iommu};
use bundle::AssignedConfig;
use e2e::host::Host;
use e2e::recipe::{Recipe, tiny};
use wire::{ReplyBody, RequestBody, UpdateBy};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("each_interrupt_of_a_line_comes_once_across_updates_behind_amds_iommu", || comes_once(Iommu::Amd)),
    ("each_interrupt_of_a_line_comes_once_across_updates_behind_intels_iommu", || comes_once(Iommu::Intel)),
];

/// QEMU's ICH9 leads pin A of slot 2 of the first bus, and of what is behind a root port there, to this input.
const GSI: u32 = 22;

/// The guest edu with the device and its line.
fn edu(name: &str, gsi: u32, cmdline: &str) -> Result<Guest> {
    let function = AssignedConfig { selector: "1234:11e8".to_owned(), without_reset: true, gsi: Some(gsi) };
    Ok(Guest { functions: vec![function], ..tiny(name, "edu", cmdline)? })
}

fn start(iommu: Iommu, guest: Guest) -> Result<Host> {
    Recipe::new().cpus(2).with_devices(iommu, vec![Device::Edu]).guest(guest).start()
}

fn update(host: &mut Host, generation: u64) -> Result<()> {
    let update = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };
    match host.client()?.request_within(Duration::from_secs(60), update)? {
        ReplyBody::Updated(report) => ensure!(report.generation == generation, "{report:?}"),
        other => bail!("{other:?}"),
    }
    Ok(())
}

/// The device interrupts all the time, also while the host is updated.
fn comes_once(iommu: Iommu) -> Result<()> {
    const ROUNDS: usize = 4;
    let rounds = ["intx"; ROUNDS].join(",");
    let mut host = start(iommu, edu("edu", GSI, &format!("do={rounds} n=2000"))?)?;
    host.limit(Duration::from_secs(60));
    host.guest_says("edu", "edu: intx: going")?;
    for generation in 2..=3 {
        update(&mut host, generation)?;
        host.guest_says("edu", "edu: intx running n=2000 came=2000")?;
    }
    for _ in 2..ROUNDS {
        host.guest_says("edu", "edu: intx halted n=2000 came=2000")?;
    }
    host.powers_off()
}

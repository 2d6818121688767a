// SPDX-License-Identifier: MIT OR Apache-2.0
//! Virtio devices of the host's, driven by stock Linux: entropy source and console, across updates.

use anyhow::{Result, bail, ensure};
use baton::config::Guest;
use bundle::VirtioDevices;
use e2e::dmesg;
use e2e::host::Host;
use e2e::place::Kernel;
use e2e::recipe::{Recipe, folder};
use e2e::stock;
use wire::{ReplyBody, RequestBody, UpdateBy};

use super::Rule;

pub const RULES: &[Rule] = &[("linux_uses_entropy_and_console_across_an_update", || goes_on(Kernel::Default, 1))];

pub const LONG_RULES: &[Rule] =
    &[("linux_6_12_uses_entropy_and_console_across_twenty_updates", || goes_on(Kernel::V6_12, 20))];

const LINUX: &str = "linux";
const DRIVERS: &[&str] = &["virtio_pci", "virtio_rng", "virtio_console"];
const TASKS: &str = "hwrng:50,hvc:50";
const DEVICES: VirtioDevices = VirtioDevices { rng: true, console: true };

fn goes_on(kernel: Kernel, updates: u64) -> Result<()> {
    let folder = folder()?;
    let linux = Guest { virtio: DEVICES, ..stock::guest(folder.path(), LINUX, kernel, DRIVERS, TASKS)? };
    let mut host = Recipe::new().guest(linux).start()?;
    for generation in 2..2 + updates {
        devices_work(&mut host, generation)?;
        let update = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };
        match host.client()?.request(update)? {
            ReplyBody::Updated(report) => ensure!(report.generation == generation, "{report:?}"),
            other => bail!("{other:?}"),
        }
    }
    devices_work(&mut host, 2 + updates)?;
    let console = host.seen.console(LINUX);
    ensure!(!console.contains("WRONG"), "{console}");
    let complaints = dmesg::suspicious(&console);
    ensure!(complaints.is_empty(), "the guest complains: {complaints:#?}");
    Ok(())
}

/// The guest reads random bytes, writes to its second console, and answers what is typed there, from now on.
fn devices_work(host: &mut Host, turn: u64) -> Result<()> {
    host.guest_says(LINUX, "hwrng ")?;
    host.guest_says(LINUX, "hvc ")?;
    host.types(LINUX, &format!("turn {turn}\n"))?;
    host.guest_says(LINUX, &format!("hvc answers turn {turn}"))
}

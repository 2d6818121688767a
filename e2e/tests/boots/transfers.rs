// SPDX-License-Identifier: MIT OR Apache-2.0
//! Disks and network cards that stock Linux uses all the time. The controls: Linux without Baton.

use std::time::Duration;

use anyhow::{Result, ensure};
use baton::config::{Address, Backend, Device, Iommu, Model, Network, Nvme, Storage};
use baton::size::Size;
use e2e::host::Host;
use e2e::place::Kernel;
use e2e::recipe::{Recipe, folder};
use e2e::stock;
use lab::datagrams::Receiver;

use super::Rule;

pub const DRIVER_LONG_RULES: &[Rule] = &[
    ("stock_linux_uses_disk_and_user_network_without_baton", stock_linux_uses_disk_and_user_network),
    ("stock_linux_uses_disk_and_cable_without_baton", stock_linux_uses_disk_and_cable),
];

/// The drivers of the disk and the card.
const DRIVERS: [&str; 2] = ["nvme", "e1000e"];
/// Reports of disk and stream that are waited for: one each second.
const REPORTS: u64 = 3;
const LINUX_LIMIT: Duration = Duration::from_secs(300);

/// A disk and a card, as devices of the machine.
fn disk_and_card(backend: Backend) -> Vec<Device> {
    let storage = Storage::Temporary(Size::mebibytes(64));
    let disk = Nvme { storage, serial: "disk".into(), virtual_functions: 0 };
    vec![Device::Nvme(disk), Device::Network(Network { model: Model::E1000e, backend, mac: None })]
}

/// Starts stock Linux as the machine's own program, and waits until it has used its disk and its card for a while. Its
/// IOMMU is Intel's: AMD's of QEMU 7.2 checks transfers from behind root ports as those of bus 0.
fn use_without_baton(backend: Backend, tasks: &str) -> Result<Host> {
    let recipe = Recipe::new().cpus(1).with_devices(Iommu::Intel, disk_and_card(backend));
    let mut host = stock::start(&recipe, Kernel::V6_1Full, &DRIVERS, tasks)?;
    host.limit(LINUX_LIMIT);
    host.logs(&[&format!("disk {REPORTS} "), " wrong=0 errors=0 "])?;
    host.logs(&[&format!("stream {REPORTS} "), " errors=0 "])?;
    ensure!(!host.seen.host_logged(&["WRONG"]), "{}", host.seen);
    Ok(host)
}

/// Checks that all datagrams of the reports came.
fn all_arrived(receiver: &Receiver) -> Result<()> {
    let (arrivals, now) = (receiver.arrivals(), receiver.now());
    let silence = arrivals.longest_silence(now.saturating_sub(Duration::from_secs(1))..now);
    let (count, lost, repeated) = (arrivals.count(), arrivals.lost(), arrivals.repeated());
    ensure!(count as u64 >= REPORTS * 900, "{count} datagrams came, and none for {silence:?}; lost {lost:?}");
    ensure!(lost.is_empty() && repeated == 0, "lost {lost:?}, {repeated} came twice, of {count}");
    ensure!(silence < Duration::from_secs(1), "nothing came in the last second");
    Ok(())
}

fn stock_linux_uses_disk_and_user_network() -> Result<()> {
    let (receiver, port) = Receiver::of_user_network()?;
    let tasks = format!("disk:8,stream:10.0.2.15:10.0.2.2:{port}");
    let _host = use_without_baton(Backend::User { forward: Vec::new() }, &tasks)?;
    all_arrived(&receiver)
}

fn stock_linux_uses_disk_and_cable() -> Result<()> {
    let folder = folder()?;
    let [local, remote] = ["local", "remote"].map(|name| folder.path().join(name));
    let receiver = Receiver::of_frames(&remote)?;
    let cable = Backend::Datagrams { local: Address::Unix(local), remote: Address::Unix(remote) };
    let _host = use_without_baton(cable, "disk:8,stream:10.0.2.15:10.0.2.255:9000")?;
    all_arrived(&receiver)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stock Linux that writes and verifies a disk of its own, and sends datagrams and verifies what a TCP connection
//! receives back through a network card of its own, all the time, while the host is updated.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use baton::config::{Guest, Iommu, Model};
use bundle::AssignedConfig;
use e2e::host::Host;
use e2e::place::Kernel;
use e2e::recipe::{Recipe, folder};
use e2e::stock;
use lab::datagrams::Receiver;
use lab::echo::Echo;

use super::Rule;
use super::devices::{card, disk};

pub const RULES: &[Rule] =
    &[("linux_keeps_its_disk_and_virtio_card_across_updates", || goes_on_across_updates(Iommu::Amd, &VIRTIO))];

pub const DRIVER_LONG_RULES: &[Rule] = &[
    ("linux_keeps_its_disk_and_card_across_updates_behind_amds_iommu", || goes_on_across_updates(Iommu::Amd, &E1000E)),
    ("linux_keeps_its_disk_and_card_across_updates_behind_intels_iommu", || {
        goes_on_across_updates(Iommu::Intel, &E1000E)
    }),
    ("linux_resets_its_disk_while_it_uses_it_behind_amds_iommu", || resets_its_disk(Iommu::Amd)),
    ("linux_resets_its_disk_while_it_uses_it_behind_intels_iommu", || resets_its_disk(Iommu::Intel)),
    ("linux_keeps_its_disk_and_virtio_card_across_updates_behind_intels_iommu", || {
        goes_on_across_updates(Iommu::Intel, &VIRTIO)
    }),
];

/// For minutes: `make test-all PART=io`.
pub const IO_LONG_RULES: &[Rule] = &[
    ("nothing_is_lost_for_ten_minutes_of_200_updates_behind_amds_iommu", || goes_on_for_minutes(Iommu::Amd, &E1000E)),
    ("nothing_is_lost_for_ten_minutes_of_200_updates_behind_intels_iommu", || {
        goes_on_for_minutes(Iommu::Intel, &E1000E)
    }),
];

/// A network card, and a kernel that has its driver.
struct Card {
    model: Model,
    selector: &'static str,
    kernel: Kernel,
    drivers: &'static [&'static str],
}

const E1000E: Card =
    Card { model: Model::E1000e, selector: "8086:10d3", kernel: Kernel::V6_1Full, drivers: &["nvme", "e1000e"] };
const VIRTIO: Card = Card {
    model: Model::VirtioNet,
    selector: "1af4:1041",
    kernel: Kernel::Default,
    drivers: &["nvme", "virtio_pci", "virtio_net"],
};

const LINUX: &str = "linux";
const NVME: &str = "1b36:0010";
/// Updates, and the least time from one to the next.
const FEW: (u64, Duration) = (3, Duration::ZERO);
const MANY: (u64, Duration) = (200, Duration::from_secs(3));
const LIMIT: Duration = Duration::from_secs(300);
/// For [`MANY`], on a machine that does other work as well.
const LONG_LIMIT: Duration = Duration::from_secs(3000);

fn goes_on_across_updates(iommu: Iommu, card: &Card) -> Result<()> {
    goes_on(iommu, card, FEW, LIMIT)
}

fn goes_on_for_minutes(iommu: Iommu, card: &Card) -> Result<()> {
    goes_on(iommu, card, MANY, LONG_LIMIT)
}

fn goes_on(iommu: Iommu, card: &Card, (updates, interval): (u64, Duration), limit: Duration) -> Result<()> {
    let (folder, (receiver, port), (echo, echo_port)) = (folder()?, Receiver::of_user_network()?, Echo::listen()?);
    let tasks = format!("disk:8,stream:10.0.2.15:10.0.2.2:{port},echo:10.0.2.2:{echo_port}");
    let mut host = start(iommu, card, folder.path(), &tasks)?;
    host.limit(limit);
    host.wait("the first reports of disk, stream and connection", |seen| {
        let console = seen.console(LINUX);
        ["disk 0 ", "stream 0 ", "echo 0 "].iter().all(|report| console.contains(report))
    })?;
    let begin = receiver.now();
    for generation in 2..2 + updates {
        let next = Instant::now() + interval;
        host.update_to(generation)?;
        host.guest_prints(LINUX, " wrong=0 errors=0 slowest_us=")?;
        sleep(next.saturating_duration_since(Instant::now()));
    }
    for report in ["stream ", "echo ", " wrong=0 errors=0 slowest_us="] {
        host.guest_prints(LINUX, report)?;
    }
    nothing_is_lost(&host, &receiver, begin)?;
    let (connections, ended) = echo.connections();
    ensure!((connections, ended) == (1, 0), "{connections} connections, {ended} of them have ended");
    host.powers_off()
}

/// The driver waits for each reset, and sends again what was under way.
fn resets_its_disk(iommu: Iommu) -> Result<()> {
    let folder = folder()?;
    let mut host = start(iommu, &E1000E, folder.path(), "disk:8,heartbeat:2000:1,reset:5,wait")?;
    host.limit(LIMIT);
    host.guest_prints(LINUX, "reset: ")?;
    host.guest_prints(LINUX, "5 times, slowest_ms=")?;
    for generation in 2..4 {
        host.update_to(generation)?;
    }
    host.guest_prints(LINUX, " wrong=0 errors=0 slowest_us=")?;
    let console = host.seen.console(LINUX);
    ensure!(!["WRONG", "timeout", "not ready"].iter().any(|word| console.contains(word)), "{console}");
    host.powers_off()
}

/// Starts a host with a guest that has the disk and the card. AMD's IOMMU is without root ports in the lab, and a
/// virtio card that is behind none has no reset.
fn start(iommu: Iommu, card_of: &Card, folder: &Path, tasks: &str) -> Result<Host> {
    let Card { model, selector, kernel, drivers } = *card_of;
    let without_reset = model == Model::VirtioNet && iommu == Iommu::Amd;
    let assigned = |selector: &str, without_reset| AssignedConfig {
        selector: selector.to_owned(),
        without_reset,
        gsi: None,
        virtual_functions: 0,
    };
    let functions = vec![assigned(NVME, false), assigned(selector, without_reset)];
    let linux = Guest { functions, ..stock::guest(folder, LINUX, kernel, drivers, tasks)? };
    Recipe::new().cpus(2).with_devices(iommu, vec![disk(0), card(model)]).guest(linux).start()
}

fn nothing_is_lost(host: &Host, receiver: &Receiver, begin: Duration) -> Result<()> {
    let (arrivals, console) = (receiver.arrivals(), host.seen.console(LINUX));
    let (lost, repeated) = (arrivals.lost(), arrivals.repeated());
    let dropped = receiver.dropped().map_or("an unknown number".to_owned(), |count| count.to_string());
    let of_these = format!("the receiver's own socket dropped {dropped}");
    ensure!(lost.is_empty() && repeated == 0, "lost {lost:?} ({of_these}), {repeated} came twice");
    let later = arrivals.count_in(begin..receiver.now());
    ensure!(later > 0, "no datagram came after the first report");
    // `nvme nvme0: I/O 5 QID 1 timeout`, `NETDEV WATCHDOG: eth0: transmit queue 0 timed out`.
    let is_bad = ["WRONG", "timeout", "timed out"].iter().any(|word| console.contains(word));
    ensure!(!is_bad, "{console}");
    Ok(())
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests with disks behind an NBD server in another guest: stock nbdkit on stock Linux, which has the real disk.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use baton::config::{Device, Guest, Iommu};
use bundle::{AssignedConfig, DiskConfig, DiskLimits, VsockConfig};
use e2e::host::Host;
use e2e::old_image;
use e2e::place::{Kernel, built};
use e2e::recipe::{Recipe, folder, program};
use e2e::stock;
use handover::state::DeviceKind;
use lab::disk_use::DiskUse;
use wire::{DiskInfo, RequestBody, UpdateBy};

use super::Rule;
use super::devices::disk as nvme;

pub const RULES: &[Rule] =
    &[("a_guest_s_disk_is_only_late_while_its_server_and_the_host_are_replaced", || is_only_late(Kernel::Default, 2))];

pub const LONG_RULES: &[Rule] = &[
    ("a_disk_with_a_write_back_cache_loses_nothing", || is_only_late_with(Kernel::Default, 6, true)),
    ("a_disk_does_no_more_requests_a_second_than_it_may", is_limited),
    ("a_server_that_is_gone_is_an_error_after_the_time_out", is_an_error_in_time),
    ("an_image_that_knows_no_such_disk_is_refused", an_image_without_disks_is_refused),
];

/// The serial number of the disk that is served.
pub const SERIAL: &str = "web";
pub(super) const STORAGE: &str = "storage";
pub(super) const WEB: &str = "web";
const STORAGE_CID: u32 = 5;
pub(super) const TIMEOUT_S: u32 = 300;
/// Of the disk that loses its server: longer than both guests take to boot.
const SHORT_TIMEOUT_S: u32 = 120;
/// Two guests boot, on a machine that does other work as well.
const LIMIT: Duration = Duration::from_secs(600);

/// The guest that has the disk, and serves it.
fn storage(folder: &Path) -> Result<Guest> {
    let mut guest = program(STORAGE, Kernel::Default.file()?);
    guest.memory = baton::size::Size::mebibytes(256);
    guest.initrd = Some(built("guests/nbdkit.cpio")?);
    guest.cmdline = "console=ttyS0 loglevel=5".to_owned();
    guest.modules.push(stock::archive(folder, Kernel::Default, &["virtio_pci", "vmw_vsock_virtio_transport"])?);
    guest.vsock = Some(VsockConfig { cid: STORAGE_CID, peers: Vec::new(), control: None });
    let selector = "1b36:0010".to_owned();
    guest.functions = vec![AssignedConfig { selector, without_reset: false, gsi: None, virtual_functions: 0 }];
    Ok(guest)
}

pub(super) fn disk(timeout_s: u32, is_write_back: bool) -> DiskConfig {
    let (export, serial) = ("web-root".to_owned(), SERIAL.to_owned());
    DiskConfig { cid: STORAGE_CID, port: 10_809, export, is_write_back, timeout_s, serial, ..DiskConfig::default() }
}

/// A guest with that disk, which does these tasks.
fn web(folder: &Path, kernel: Kernel, disk: DiskConfig, tasks: &str) -> Result<Guest> {
    let guest = stock::guest(folder, WEB, kernel, &["virtio_pci", "virtio_blk"], tasks)?;
    Ok(Guest { disks: vec![disk], ..guest })
}

fn recipe(folder: &Path, kernel: Kernel, disk: DiskConfig, tasks: &str) -> Result<Recipe> {
    let of_web = folder.join(WEB);
    std::fs::create_dir(&of_web)?;
    served(folder, nvme(0), web(&of_web, kernel, disk, tasks)?)
}

/// A machine with this disk; its guest serves it to another one.
pub(super) fn served(folder: &Path, device: Device, guest: Guest) -> Result<Recipe> {
    let of_storage = folder.join(STORAGE);
    std::fs::create_dir(&of_storage)?;
    let recipe = Recipe::new().cpus(2).memory_mib(1536).with_devices(Iommu::Amd, vec![device]);
    Ok(recipe.guest(storage(&of_storage)?).guest(guest))
}

/// The same; the other guest is `guest` with the disk.
pub fn serving(folder: &Path, device: Device, guest: Guest) -> Result<Recipe> {
    served(folder, device, Guest { disks: vec![disk(TIMEOUT_S, false)], ..guest })
}

fn is_only_late(kernel: Kernel, updates: u64) -> Result<()> {
    is_only_late_with(kernel, updates, false)
}

/// Blocks are written and verified for ever; between updates the server's guest is reset.
fn is_only_late_with(kernel: Kernel, updates: u64, is_write_back: bool) -> Result<()> {
    let folder = folder()?;
    let mut host = recipe(folder.path(), kernel, disk(TIMEOUT_S, is_write_back), "disk:4")?.start()?;
    host.limit(LIMIT);
    host.guest_prints(STORAGE, "storage: serving")?;
    verifies_more(&mut host)?;
    for generation in 2..2 + updates {
        host.update_to(generation)?;
        verifies_more(&mut host)?;
        // The connection goes on, but where acknowledged writes would have to be repeated on another one.
        let disk = is_served(&mut host, 0)?;
        ensure!(disk.connections == 0 || is_write_back, "{disk:?}");
        if generation % 2 == 0 {
            host.client()?.request(RequestBody::VmReset { name: STORAGE.to_owned() })?;
            host.guest_prints(STORAGE, "storage: serving")?;
            is_served(&mut host, disk.connections + 1)?;
            verifies_more(&mut host)?;
        }
    }
    let console = host.seen.console(WEB);
    ensure!(!["WRONG", "I/O error"].iter().any(|word| console.contains(word)), "{console}");
    is_listed(&only_disk(&mut host)?, is_write_back)?;
    host.powers_off()
}

/// Waits until the disk has had so many connections, and is connected and has answered requests: what its guest prints
/// may come late, and be of an earlier connection or image.
fn is_served(host: &mut Host, connections: u64) -> Result<DiskInfo> {
    loop {
        let disk = only_disk(host)?;
        let is_new = disk.connections >= connections;
        if is_new && disk.is_connected && disk.reads.requests + disk.writes.requests > 0 {
            return Ok(disk);
        }
        host.wait_a_moment()?;
    }
}

fn is_listed(disk: &DiskInfo, is_write_back: bool) -> Result<()> {
    let place = (disk.guest.as_str(), disk.number, disk.server.as_str(), disk.export.as_str(), disk.serial.as_str());
    ensure!(place == (WEB, 1, STORAGE, "web-root", SERIAL) && disk.is_write_back == is_write_back, "{disk:?}");
    ensure!(disk.bytes > Some(0) && disk.failures == 0, "{disk:?}");
    let (requests, bytes) = (disk.reads.requests + disk.writes.requests, disk.reads.bytes + disk.writes.bytes);
    ensure!(requests > 0 && bytes >= 512 * requests, "{disk:?}");
    Ok(())
}

/// Returns the only disk of the host, as it lists it.
fn only_disk(host: &mut Host) -> Result<DiskInfo> {
    let disks = host.client()?.disks()?;
    let [disk] = <[DiskInfo; 1]>::try_from(disks).map_err(|disks| anyhow::anyhow!("one disk, not {disks:?}"))?;
    Ok(disk)
}

/// The blocks that are written and verified become more, and none is another.
pub(super) fn verifies_more(host: &mut Host) -> Result<()> {
    // The first line may be of blocks before what was done last.
    for _ in 0..2 {
        host.guest_prints(WEB, " wrong=0 errors=0 ")?;
    }
    let before = blocks(host)?;
    while blocks(host)? == before {
        host.guest_prints(WEB, " wrong=0 errors=0 ")?;
    }
    Ok(())
}

/// Blocks that are written and verified in all, as last reported.
fn blocks(host: &Host) -> Result<u64> {
    let console = host.seen.console(WEB);
    let last = console.lines().rev().find_map(DiskUse::of).context("no report of the disk is whole")?;
    Ok(last.blocks())
}

/// The guest reports each second of its own clock; a block is a request.
fn is_limited() -> Result<()> {
    const IOPS: u64 = 20;
    const SECONDS: u64 = 5;
    let folder = folder()?;
    let limits = DiskLimits { requests_per_s: Some(IOPS as u32), bytes_per_s: None };
    let limited = DiskConfig { limits, ..disk(TIMEOUT_S, false) };
    let mut host = recipe(folder.path(), Kernel::Default, limited, "disk:4")?.start()?;
    host.limit(LIMIT);
    verifies_more(&mut host)?;
    for generation in 2..4 {
        let before = blocks(&host)?;
        for _ in 0..SECONDS {
            host.guest_prints(WEB, " wrong=0 errors=0 ")?;
        }
        let done = blocks(&host)? - before;
        // The last block of a report is begun within its second; one report more may have been printed.
        let most = (SECONDS + 1) * (IOPS + 2);
        ensure!((1..=most).contains(&done), "{done} requests in {SECONDS} s: at most {most} are allowed");
        host.update_to(generation)?;
        verifies_more(&mut host)?;
    }
    host.powers_off()
}

fn is_an_error_in_time() -> Result<()> {
    let folder = folder()?;
    let mut host =
        recipe(folder.path(), Kernel::Default, disk(SHORT_TIMEOUT_S, false), "disk:4,heartbeat:1000")?.start()?;
    host.limit(LIMIT);
    verifies_more(&mut host)?;
    host.client()?.request(RequestBody::VmStop { name: STORAGE.to_owned() })?;
    host.guest_prints(WEB, "WRONG: block ")?;
    host.beats(WEB, 3)?;
    host.logs(&["guest web: disk 1 waits for its server: "])?;
    let disk = only_disk(&mut host)?;
    ensure!(!disk.is_connected && disk.failures > 0 && disk.connections == 1, "{disk:?}");
    host.powers_off()
}

fn an_image_without_disks_is_refused() -> Result<()> {
    let folder = folder()?;
    let old = folder.path().join("old.elf");
    std::fs::write(&old, old_image::knowing_devices_up_to(DeviceKind::SriovFunction)?)?;
    let recipe = recipe(folder.path(), Kernel::Default, disk(TIMEOUT_S, false), "disk:4")?;
    let mut host = Recipe { image: baton::config::Image::File(old), ..recipe }.start()?;
    host.limit(LIMIT);
    verifies_more(&mut host)?;
    let refusal = host.refusal(RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle })?.to_string();
    ensure!(refusal.contains("guest 'web': it has a device that the image does not know"), "{refusal}");
    verifies_more(&mut host)?;
    host.powers_off()
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host with one disk whose service guest gives twenty others a disk each; all of them are on one network.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use baton::config::{Device, Guest, Iommu, Nvme, Storage};
use baton::size::Size;
use bundle::{AssignedConfig, DiskConfig, DiskLimits, NetworkConfig, NicConfig, VsockConfig};
use e2e::guest_tool;
use e2e::host::Host;
use e2e::place::{Kernel, built};
use e2e::recipe::{Recipe, folder};
use e2e::stock;
use wire::RequestBody;

use super::Rule;
use super::disk_boot::runs;
use super::networks::nic;

pub const LONG_RULES: &[Rule] =
    &[("twenty_guests_have_a_disk_and_a_network_each_across_an_update", twenty_guests_have_both)];

const GUESTS: u8 = 20;
const STORAGE: &str = "storage";
const STORAGE_CID: u32 = 5;
const SERVER: &str = "server";
/// The most memory of the host for a guest's devices.
const DEVICES_BYTES: u64 = 1 << 20;
/// They share one thread of the emulator: each is to do little.
const LIMITS: DiskLimits = DiskLimits { requests_per_s: Some(2), bytes_per_s: None };
const NIC_RATE: u64 = 8 << 10;
const MEMORY: Size = Size::mebibytes(112);
/// Twenty-two Linuxes boot on one thread of the emulator, on a machine that does other work as well.
const LIMIT: Duration = Duration::from_secs(900);

/// A server for each guest's disk: an image in the file system on the machine's disk.
const SERVE: &str = r#"
mkdir -p /disks
until [ -b /dev/nvme0n1 ]; do sleep 1; done
mount -t ext4 /dev/nvme0n1 /disks
number=0
while [ $number -lt 20 ]; do
  nbdkit --vsock --port $((10809 + number)) --threads 1 --filter=noparallel file /disks/$number.img serialize=connections
  number=$((number + 1))
done
echo "storage: serving"
exec sh
"#;

fn name(number: u8) -> String {
    format!("guest-{number}")
}

/// The guest that has the disk.
fn storage(folder: &Path) -> Result<Guest> {
    let drivers = &["virtio_pci", "vmw_vsock_virtio_transport", "nvme", "ext4"];
    let folder = folder.join(STORAGE);
    fs::create_dir(&folder)?;
    let mut guest = guest_tool::guest(&folder, STORAGE, drivers, SERVE, &[])?;
    guest.modules.insert(0, built("guests/nbdkit.cpio")?);
    guest.vsock = Some(VsockConfig { cid: STORAGE_CID, peers: Vec::new(), control: None });
    guest.functions = vec![AssignedConfig { selector: "1b36:0010".to_owned(), ..AssignedConfig::default() }];
    Ok(guest)
}

/// The machine's disk: a file system with an image for each guest.
fn disk(folder: &Path) -> Result<Device> {
    let tree = folder.join("disks");
    fs::create_dir(&tree)?;
    for number in 0..GUESTS {
        fs::File::create(tree.join(format!("{number}.img")))?.set_len(2 << 20)?;
    }
    let file = folder.join("nvme.img");
    let mut made = Command::new("mke2fs");
    made.args(["-q", "-F", "-t", "ext4", "-d"]).arg(&tree).arg(&file).arg("96m");
    runs(made)?;
    Ok(Device::Nvme(Nvme { storage: Storage::File(file), serial: "disks".to_owned(), virtual_functions: 0 }))
}

/// A host with all guests: with devices, or each as large without. They start once their disks' servers do: a server
/// among twenty busy guests takes seconds to start.
fn start(folder: &Path, has_devices: bool) -> Result<Host> {
    let guest = |name: &str, drivers: &[&str], tasks: &str| -> Result<Guest> {
        Ok(Guest { memory: MEMORY, ..stock::guest(folder, name, Kernel::Default, drivers, tasks)? })
    };
    let lan = NetworkConfig { name: "lan".to_owned(), mtu: 1500 };
    let recipe = Recipe::new().cpus(2).memory_mib(3584).with_devices(Iommu::Amd, vec![disk(folder)?]);
    let server = Guest { nics: vec![nic(1)], ..guest(SERVER, &["virtio_pci", "virtio_net"], "serve:10.9.0.1:7")? };
    let mut recipe = Recipe { networks: vec![lan], ..recipe.guest(storage(folder)?).guest(server) };
    for number in 0..GUESTS {
        let address = format!("10.9.0.{}", 2 + number);
        let tasks = format!("disk:1,echo:{address}:10.9.0.1:7");
        let tasks = if has_devices { tasks } else { "heartbeat:1000".to_owned() };
        let one = guest(&name(number), &["virtio_pci", "virtio_net", "virtio_blk"], &tasks)?;
        let port = 10_809 + u32::from(number);
        let disk = DiskConfig { cid: STORAGE_CID, port, timeout_s: 600, limits: LIMITS, ..DiskConfig::default() };
        let nic = NicConfig { rate_bytes_per_s: Some(NIC_RATE), ..nic(2 + number) };
        let (nics, disks) = if has_devices { (vec![nic], vec![disk]) } else { (vec![], vec![]) };
        recipe = recipe.guest(Guest { nics, disks, hung_s: 0, autostart: false, ..one });
    }
    let mut host = recipe.start()?;
    host.limit(LIMIT);
    host.guest_prints(STORAGE, "storage: serving")?;
    for number in 0..GUESTS {
        host.order(RequestBody::VmStart { name: name(number) })?;
    }
    Ok(host)
}

/// Waits until each guest has verified blocks, and has had answers, after this.
fn all_live(host: &mut Host) -> Result<()> {
    for number in 0..GUESTS {
        for text in [" wrong=0 errors=0 ", "echo "] {
            // The first line that follows may be of what was before.
            host.guest_prints(&name(number), text)?;
            host.guest_prints(&name(number), text)?;
        }
    }
    Ok(())
}

fn overhead(host: &mut Host) -> Result<u64> {
    Ok(host.client()?.info()?.host_overhead_bytes)
}

fn twenty_guests_have_both() -> Result<()> {
    let (plain, full) = (folder()?, folder()?);
    let mut host = start(plain.path(), false)?;
    for number in 0..GUESTS {
        host.beats(&name(number), 1)?;
    }
    let without = overhead(&mut host)?;
    host.powers_off()?;
    let mut host = start(full.path(), true)?;
    all_live(&mut host)?;
    let with = overhead(&mut host)?;
    let each = with.saturating_sub(without) / u64::from(GUESTS);
    println!("memory of the host for the disk and the network device of a guest: {each} bytes");
    ensure!((1..=DEVICES_BYTES).contains(&each), "{each} bytes for each guest: {with} with devices, {without} without");
    host.update_to(2)?;
    all_live(&mut host)?;
    for number in 0..GUESTS {
        let console = host.seen.console(&name(number));
        ensure!(!["WRONG", "I/O error", "timed out"].iter().any(|bad| console.contains(bad)), "{number}: {console}");
    }
    host.powers_off()
}

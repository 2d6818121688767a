// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests with network devices, sockets and disks that come and go while the host and its other guests run.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use baton::config::Guest;
use bundle::{DiskConfig, GuestConfig, HostConfig, Manifest, NetworkConfig, VsockConfig};
use e2e::host::Host;
use e2e::place::Kernel;
use e2e::recipe::{Recipe, folder};
use e2e::stock;
use wire::{RefusalCode, RequestBody, VmState};

use super::Rule;
use super::disks::{self, disk, verifies_more};
use super::networks::{echoes_across_updates, nic};

pub const RULES: &[Rule] =
    &[("a_guest_that_is_added_has_its_network_and_its_sockets_across_an_update", has_its_network_and_sockets)];

pub const LONG_RULES: &[Rule] = &[("a_guest_that_is_added_has_its_disk_across_updates", has_its_disk)];

const SERVER: &str = "server";
const CLIENT: &str = "client";
/// A guest that does not start: the host has the files of others that are like it.
const TEMPLATE: &str = "template";
const SERVER_CID: u32 = 100;
const CLIENT_CID: u32 = 200;
const LAN: &str = "lan";
const DRIVERS: &[&str] = &["virtio_pci", "virtio_net", "vmw_vsock_virtio_transport"];
/// Guests that come and go without a start.
const TIMES: usize = 20;
/// Each guest has to boot and to answer, on a machine that does other work as well.
const LIMIT: Duration = Duration::from_secs(600);

fn named(name: &str) -> String {
    name.to_owned()
}

fn network(name: &str) -> NetworkConfig {
    NetworkConfig { name: named(name), mtu: 1500 }
}

/// The request for a guest that is otherwise like the template.
fn like_template(host: &mut Host, change: impl FnOnce(&mut GuestConfig)) -> Result<RequestBody> {
    let guests = host.client()?.config()?.guests;
    let mut guest = guests.into_iter().find(|guest| guest.name == TEMPLATE).context("there is no template")?;
    (guest.name, guest.autostart) = (named(CLIENT), true);
    change(&mut guest);
    Ok(request(guest, &[LAN]))
}

fn request(guest: GuestConfig, networks: &[&str]) -> RequestBody {
    let networks = networks.iter().map(|name| network(name)).collect();
    let host = HostConfig { networks, ..HostConfig::default() };
    RequestBody::VmCreate { manifest: Manifest { host, guests: vec![guest], files: vec![] }.to_content() }
}

/// A host with a server, and the files of guests that do these tasks.
fn start(tasks: &str) -> Result<Host> {
    let folder = folder()?;
    let guest = |name: &str, last, tasks: &str| -> Result<Guest> {
        Ok(Guest { nics: vec![nic(last)], ..stock::guest(folder.path(), name, Kernel::Default, DRIVERS, tasks)? })
    };
    let vsock = Some(VsockConfig { cid: SERVER_CID, peers: Vec::new(), control: None });
    let server = Guest { vsock, ..guest(SERVER, 1, "serve:10.9.0.1:7,vsock-serve:7")? };
    let template = Guest { autostart: false, ..guest(TEMPLATE, 2, tasks)? };
    // The first network is not the one of the request.
    let networks = vec![network(LAN), network("wan")];
    let mut host = Recipe { networks, ..Recipe::new().cpus(2).guest(server).guest(template) }.start()?;
    host.limit(LIMIT);
    Ok(host)
}

/// One connection is TCP's, one a virtio socket's.
fn has_its_network_and_sockets() -> Result<()> {
    let mut host = start("stream:10.9.0.2:10.9.0.1:9,echo:10.9.0.1:7,vsock-echo:100:7")?;
    host.guest_prints(SERVER, " listens")?;
    let create = like_template(&mut host, |guest| {
        guest.nics = vec![nic(3)];
        guest.vsock = Some(VsockConfig { cid: CLIENT_CID, peers: vec![SERVER_CID], control: None });
        guest.disks = vec![DiskConfig { cid: SERVER_CID, timeout_s: 1, port: 1, ..DiskConfig::default() }];
    })?;
    are_refused(&mut host)?;
    come_and_go(&mut host, &create)?;
    host.order(create)?;
    host.order(RequestBody::VmStart { name: named(CLIENT) })?;
    echoes_across_updates(&mut host, [SERVER, CLIENT], 1)?;
    let begun = host.seen.console(CLIENT).matches("echo 0 ").count();
    ensure!(begun == 2, "{begun} of two connections have begun");
    let ports = host.client()?.net_ports()?;
    let owners: Vec<_> = ports.iter().map(|port| (port.guest.as_str(), port.is_up)).collect();
    ensure!(owners == [(SERVER, true), (TEMPLATE, false), (CLIENT, true)], "{ports:?}");
    ensure!(ports[2].sent.frames > 0 && ports[2].received.frames > 0, "{ports:?}");
    let refusal = host.refusal(RequestBody::VmDelete { name: named(SERVER) })?;
    ensure!(refusal.code == RefusalCode::WrongState, "{refusal:?}");
    host.order(RequestBody::VmStop { name: named(CLIENT) })?;
    host.state(CLIENT, VmState::Stopped)?;
    host.order(RequestBody::VmDelete { name: named(CLIENT) })?;
    ensure!(host.client()?.net_ports()?.len() == 2, "the port of a guest that is gone is there");
    host.powers_off()
}

/// A device that the host cannot give is refused by name, and nothing changes.
fn are_refused(host: &mut Host) -> Result<()> {
    let before = (host.client()?.config()?, host.client()?.net_ports()?.len());
    let mut template = before.0.guests.last().context("there is no guest")?.clone();
    template.name = named(CLIENT);
    let with = |change: &dyn Fn(&mut GuestConfig)| {
        let mut guest = template.clone();
        change(&mut guest);
        guest
    };
    let taken = with(&|_| {});
    let nowhere = with(&|guest| guest.nics = vec![nic(3)]);
    let same_cid = with(&|guest| {
        guest.nics.clear();
        guest.vsock = Some(VsockConfig { cid: SERVER_CID, peers: Vec::new(), control: None });
    });
    let no_server = with(&|guest| {
        guest.nics.clear();
        guest.disks = vec![DiskConfig { cid: 7, port: 1, timeout_s: 1, ..DiskConfig::default() }];
    });
    for (guest, network, reason) in [
        (taken, LAN, "has the MAC address of another network device"),
        (nowhere, "office", "the host has no network \"office\""),
        (same_cid, LAN, "has the context identifier of another guest"),
        (no_server, LAN, "has a disk whose server is no other guest with sockets"),
    ] {
        let refusal = host.refusal(request(guest, &[network]))?;
        ensure!(refusal.code == RefusalCode::Invalid && refusal.reason.contains(reason), "{refusal:?}, not {reason:?}");
    }
    ensure!((host.client()?.config()?, host.client()?.net_ports()?.len()) == before, "something has changed");
    Ok(())
}

/// The guest is created and deleted so often. No frame is lost.
fn come_and_go(host: &mut Host, create: &RequestBody) -> Result<()> {
    let once = |host: &mut Host| -> Result<u64> {
        host.order(create.clone())?;
        host.order(RequestBody::VmDelete { name: named(CLIENT) })?;
        Ok(host.client()?.info()?.memory_free_bytes)
    };
    // Once, so that what is made for the first time is there.
    let (free, mut left) = (once(host)?, 0);
    for _ in 0..TIMES {
        left = once(host)?;
    }
    ensure!(left == free, "{TIMES} guests that are gone hold {} bytes", free.abs_diff(left));
    Ok(())
}

/// The disk's server is a guest of the boot, which is reset once.
fn has_its_disk() -> Result<()> {
    let folder = folder()?;
    let template = Guest {
        autostart: false,
        disks: Vec::new(),
        ..stock::guest(folder.path(), TEMPLATE, Kernel::Default, &["virtio_pci", "virtio_blk"], "disk:4")?
    };
    let mut host = disks::served(folder.path(), super::devices::disk(0), template)?.start()?;
    host.limit(LIMIT);
    host.guest_prints(disks::STORAGE, "storage: serving")?;
    let create = like_template(&mut host, |guest| {
        guest.name = named(disks::WEB);
        guest.disks = vec![disk(disks::TIMEOUT_S, false)];
    })?;
    host.order(create.clone())?;
    host.order(RequestBody::VmStart { name: named(disks::WEB) })?;
    verifies_more(&mut host)?;
    host.update_to(2)?;
    verifies_more(&mut host)?;
    host.client()?.request(RequestBody::VmReset { name: named(disks::STORAGE) })?;
    host.guest_prints(disks::STORAGE, "storage: serving")?;
    verifies_more(&mut host)?;
    let refusal = host.refusal(RequestBody::VmDelete { name: named(disks::STORAGE) })?;
    ensure!(refusal.code == RefusalCode::WrongState, "{refusal:?}");
    host.order(RequestBody::VmStop { name: named(disks::WEB) })?;
    host.state(disks::WEB, VmState::Stopped)?;
    host.order(RequestBody::VmDelete { name: named(disks::WEB) })?;
    // The number of its stream is another's now.
    host.order(create)?;
    host.order(RequestBody::VmStart { name: named(disks::WEB) })?;
    verifies_more(&mut host)?;
    host.update_to(3)?;
    verifies_more(&mut host)?;
    let console = host.seen.console(disks::WEB);
    ensure!(!["WRONG", "I/O error"].iter().any(|word| console.contains(word)), "{console}");
    host.powers_off()
}

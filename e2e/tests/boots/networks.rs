// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests that reach each other over a network inside the host.

mod pairs;

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use baton::client::{MAX_SNAP_BYTES, Wanted};
use baton::config::Guest;
use bundle::{NetworkConfig, NicConfig};
use e2e::host::Host;
use e2e::place::Kernel;
use e2e::recipe::{Recipe, folder};
use e2e::stock;
use wire::{CapturedFrame, NetPort, RequestBody};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("stock_guests_keep_a_connection_to_each_other_across_an_update", || keep_a_connection(Kernel::Default, 1)),
    ("each_vcpu_of_a_stock_guest_receives_by_queues_of_its_own", pairs::each_vcpu_receives_by_its_own),
];

pub const LONG_RULES: &[Rule] = &[
    ("stock_guests_of_6_1_keep_a_connection_across_twenty_updates", || keep_a_connection(Kernel::V6_1, MANY)),
    ("stock_guests_of_6_12_keep_a_connection_across_twenty_updates", || keep_a_connection(Kernel::V6_12, MANY)),
    ("a_guest_is_reset_and_stopped_while_another_sends_to_it", reset_under_way),
];

pub(super) const SERVER: &str = "server";
pub(super) const CLIENT: &str = "client";
pub(super) const DRIVERS: &[&str] = &["virtio_pci", "virtio_net"];
/// Updates of the long form.
const MANY: u64 = 20;
/// Each of them has to boot and to answer, on a machine that does other work as well.
const LIMIT: Duration = Duration::from_secs(600);
/// Longest wait for a frame, and the time between two checks.
const RECEIVE_LIMIT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Time of a capture.
const CAPTURED: Duration = Duration::from_secs(1);

pub(super) fn nic(last: u8) -> NicConfig {
    NicConfig::with_mac([0x52, 0x54, 0, 0, 0, last])
}

/// A server, and a client with these tasks; `option` is behind both kernels' command lines.
pub(super) fn start(kernel: Kernel, tasks: &str, option: &str) -> Result<Host> {
    let folder = folder()?;
    let guest = |name: &str, last, tasks: &str| -> Result<Guest> {
        let mut guest = stock::guest(folder.path(), name, kernel, DRIVERS, tasks)?;
        guest.cmdline.push_str(option);
        Ok(Guest { nics: vec![nic(last)], ..guest })
    };
    let (server, client) = (guest(SERVER, 1, "serve:10.9.0.1:7")?, guest(CLIENT, 2, tasks)?);
    let lan = NetworkConfig { name: "lan".to_owned(), mtu: 1500 };
    let recipe = Recipe { networks: vec![lan], ..Recipe::new().cpus(2).guest(server).guest(client) };
    recipe.start()
}

/// Blocks of 4 KiB go to the other guest and back, which Linux leaves to the device to cut into segments.
fn keep_a_connection(kernel: Kernel, updates: u64) -> Result<()> {
    let mut host = start(kernel, "stream:10.9.0.2:10.9.0.1:9,echo:10.9.0.1:7", "")?;
    host.limit(LIMIT);
    echoes_across_updates(&mut host, [SERVER, CLIENT], updates)?;
    ports_are_counted(&mut host)?;
    frames_are_captured(&mut host)?;
    host.powers_off()
}

/// The frames of a guest, both ways, as they were sent; and an update ends a capture.
fn frames_are_captured(host: &mut Host) -> Result<()> {
    let (mut frames, wanted) = (Vec::new(), Wanted { network: "lan", guest: Some(CLIENT), snap_bytes: MAX_SNAP_BYTES });
    let cut_short = host.client()?.capture(wanted, CAPTURED, |page| {
        frames.extend(page.frames);
        Ok(())
    })?;
    ensure!(cut_short.is_none(), "{cut_short:?}");
    for (name, last) in [(SERVER, 1), (CLIENT, 2)] {
        let mac = nic(last).mac;
        let mut own = frames.iter().filter(|frame| frame.sender == name).peekable();
        ensure!(own.peek().is_some(), "{name} has sent none of {}", frames.len());
        let is_whole =
            |frame: &CapturedFrame| frame.content.len() == (frame.bytes as usize).min(MAX_SNAP_BYTES as usize);
        ensure!(own.all(|frame| is_whole(frame) && frame.content[6..12] == mac), "{name}");
    }
    ensure!(frames.is_sorted_by_key(|frame| frame.time_ns), "they are out of order");
    let no_network = Wanted { network: "wan", ..wanted };
    let refused = host.client()?.capture(no_network, CAPTURED, |_| Ok(())).map(drop);
    ensure!(refused.is_err_and(|error| error.to_string().contains("there is no network \"wan\"")), "another network");
    an_update_ends_a_capture(host)
}

fn an_update_ends_a_capture(host: &mut Host) -> Result<()> {
    let (by, network) = (1, "lan".to_owned());
    host.client()?.request(RequestBody::CaptureBegin { by, network, guest: None, snap_bytes: 60 })?;
    let next = host.client()?.info()?.generation + 1;
    host.update_to(next)?;
    let refused = host.client()?.request(RequestBody::CaptureRead { by, is_end: false });
    ensure!(refused.is_err_and(|error| error.to_string().contains("the capture is over")), "the next image goes on");
    Ok(())
}

/// The client's blocks go to the server and back during so many updates, and no connection ends.
pub(super) fn echoes_across_updates(host: &mut Host, [server, client]: [&str; 2], updates: u64) -> Result<()> {
    host.guest_prints(client, "echo 0 ")?;
    for generation in 2..2 + updates {
        host.update_to(generation)?;
        // The line that follows may be of blocks before the update; the second one is not.
        host.guest_prints(client, "echo ")?;
        host.guest_prints(client, "echo ")?;
    }
    for guest in [server, client] {
        let console = host.seen.console(guest);
        ensure!(!["WRONG", "timed out", "has ended"].iter().any(|word| console.contains(word)), "{guest}: {console}");
    }
    Ok(())
}

fn ports_are_counted(host: &mut Host) -> Result<()> {
    let ports = host.client()?.net_ports()?;
    let [server, client]: &[NetPort; 2] = ports.as_slice().try_into()?;
    for port in [server, client] {
        ensure!(port.is_up && port.network == "lan", "{port:?}");
        ensure!(port.sent.frames > 0 && port.received.frames > 0, "{port:?}");
    }
    ensure!((server.guest.as_str(), client.guest.as_str()) == (SERVER, CLIENT), "{ports:?}");
    Ok(())
}

/// The server's memory goes and comes while frames are written to it; the client sends on.
fn reset_under_way() -> Result<()> {
    let mut host = start(Kernel::Default, "stream:10.9.0.2:10.9.0.1:9,heartbeat:100", "")?;
    host.limit(LIMIT);
    host.guest_prints(SERVER, " listens")?;
    host.guest_prints(CLIENT, "stream 0 ")?;
    for _ in 0..5 {
        let before = port_of(&mut host, SERVER)?.received.frames;
        host.client()?.request(RequestBody::VmReset { name: SERVER.to_owned() })?;
        host.guest_prints(SERVER, " listens")?;
        // The client may have given up on the server's address, and asks for it again in a while.
        receives(&mut host, SERVER, before)?;
    }
    host.client()?.request(RequestBody::VmStop { name: SERVER.to_owned() })?;
    host.beats(CLIENT, 20)?;
    let server = port_of(&mut host, SERVER)?;
    ensure!(!server.is_up && server.drops.down > 0, "{server:?}");
    let console = host.seen.console(CLIENT);
    ensure!(!["WRONG", "timed out"].iter().any(|word| console.contains(word)), "{console}");
    host.powers_off()
}

/// Waits until a guest has received more frames than these.
fn receives(host: &mut Host, guest: &str, before: u64) -> Result<()> {
    let end = Instant::now() + RECEIVE_LIMIT;
    loop {
        let port = port_of(host, guest)?;
        if port.received.frames > before {
            return Ok(());
        }
        ensure!(Instant::now() < end, "it received {before} frames and no other: {port:?}");
        sleep(POLL_INTERVAL);
    }
}

pub(super) fn port_of(host: &mut Host, guest: &str) -> Result<NetPort> {
    let ports = host.client()?.net_ports()?;
    ports.into_iter().find(|port| port.guest == guest).ok_or_else(|| anyhow!("{guest} has no port"))
}

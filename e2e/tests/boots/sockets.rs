// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests that reach each other by virtio sockets.

use std::time::Duration;

use anyhow::{Result, ensure};
use baton::config::Guest;
use bundle::VsockConfig;
use e2e::host::Host;
use e2e::place::Kernel;
use e2e::recipe::{Recipe, folder};
use e2e::stock;
use wire::RequestBody;

use super::Rule;
use super::networks::echoes_across_updates;

pub const RULES: &[Rule] =
    &[("stock_guests_keep_a_virtio_socket_across_an_update", || keep_a_connection(Kernel::Default, 1))];

pub const LONG_RULES: &[Rule] = &[
    ("stock_guests_of_6_1_keep_a_virtio_socket_across_twenty_updates", || keep_a_connection(Kernel::V6_1, MANY)),
    ("stock_guests_of_6_12_keep_a_virtio_socket_across_twenty_updates", || keep_a_connection(Kernel::V6_12, MANY)),
    ("a_virtio_socket_ends_with_the_other_end_s_guest", ends_with_the_guest),
    ("unknown_ports_guests_and_ten_thousand_connections_are_refused", are_refused),
];

const SERVER: &str = "server";
const CLIENT: &str = "client";
const SERVER_CID: u32 = 100;
const CLIENT_CID: u32 = 3;
const DRIVERS: &[&str] = &["virtio_pci", "vmw_vsock_virtio_transport"];
/// Updates of the long form.
const MANY: u64 = 20;
/// Each guest has to boot and to answer, on a machine that does other work as well.
const LIMIT: Duration = Duration::from_secs(600);

/// A server, and a client with these tasks, which may connect to it and not the reverse.
fn start(kernel: Kernel, tasks: (&str, &str)) -> Result<Host> {
    let folder = folder()?;
    let guest = |name: &str, cid, peers: &[u32], tasks: &str| -> Result<Guest> {
        let vsock = Some(VsockConfig { cid, peers: peers.to_vec(), control: None });
        Ok(Guest { vsock, ..stock::guest(folder.path(), name, kernel, DRIVERS, tasks)? })
    };
    let server = guest(SERVER, SERVER_CID, &[], tasks.0)?;
    let client = guest(CLIENT, CLIENT_CID, &[SERVER_CID], tasks.1)?;
    let mut host = Recipe::new().cpus(2).guest(server).guest(client).start()?;
    host.limit(LIMIT);
    Ok(host)
}

/// Blocks of 4 KiB go to the other guest and back, and each is verified.
fn keep_a_connection(kernel: Kernel, updates: u64) -> Result<()> {
    let mut host = start(kernel, ("vsock-serve:7", "vsock-echo:100:7"))?;
    echoes_across_updates(&mut host, [SERVER, CLIENT], updates)?;
    host.powers_off()
}

/// The client is stopped in the middle of its connection: the server, which only waits for data, learns that.
fn ends_with_the_guest() -> Result<()> {
    let mut host = start(Kernel::Default, ("vsock-serve:7,heartbeat:100", "vsock-echo:100:7"))?;
    host.guest_prints(CLIENT, "echo 0 ")?;
    for _ in 0..3 {
        host.client()?.request(RequestBody::VmReset { name: CLIENT.to_owned() })?;
        host.guest_prints(SERVER, "a vsock connection has ended: ")?;
        host.guest_prints(CLIENT, "echo 0 ")?;
    }
    host.client()?.request(RequestBody::VmStop { name: CLIENT.to_owned() })?;
    host.guest_prints(SERVER, "a vsock connection has ended: ")?;
    host.beats(SERVER, 20)?;
    host.powers_off()
}

/// Ports without a listener, the host, guests that are none or may not be reached, and more connections than a
/// guest can have with another: each is refused at once, and what is open goes on.
fn are_refused() -> Result<()> {
    let tasks = "vsock-crowd:100:8:1,vsock-crowd:2:7:1,vsock-crowd:77:7:1,vsock-echo:100:7,vsock-crowd:100:7:10000,\
                 vsock-crowd:100:7:100,heartbeat:100";
    let mut host = start(Kernel::Default, ("vsock-serve:7,heartbeat:1000:10,vsock-crowd:3:7:1,wait", tasks))?;
    for nowhere in ["100:8", "2:7", "77:7"] {
        host.guest_prints(CLIENT, &format!("crowd: vsock {nowhere}: open=0 refused=1 reason=Connection reset"))?;
    }
    // One is the echo's.
    host.guest_prints(CLIENT, "crowd: vsock 100:7: open=127 refused=9873 reason=Connection reset")?;
    host.guest_prints(CLIENT, "crowd: vsock 100:7: open=100 refused=0")?;
    host.guest_prints(SERVER, "crowd: vsock 3:7: open=0 refused=1 reason=Connection reset")?;
    host.guest_prints(CLIENT, "echo ")?;
    host.guest_prints(CLIENT, "echo ")?;
    let console = host.seen.console(CLIENT);
    ensure!(!["WRONG", "timed out"].iter().any(|word| console.contains(word)), "{console}");
    host.powers_off()
}

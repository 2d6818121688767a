// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests that reach each other over a network inside the host.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use baton::config::Guest;
use bundle::{NetworkConfig, NicConfig, NicVlans};
use e2e::host::Host;
use e2e::place::Kernel;
use e2e::recipe::{Recipe, folder};
use e2e::stock;
use wire::{NetPort, ReplyBody, RequestBody, UpdateBy};

use super::Rule;

pub const RULES: &[Rule] =
    &[("stock_guests_keep_a_connection_to_each_other_across_an_update", || keep_a_connection(Kernel::Default, 1))];

const SERVER: &str = "server";
const CLIENT: &str = "client";
const DRIVERS: &[&str] = &["virtio_pci", "virtio_net"];
const UPDATE_LIMIT: Duration = Duration::from_secs(60);

fn nic(last: u8) -> NicConfig {
    NicConfig {
        network: 0,
        mac: [0x52, 0x54, 0, 0, 0, last],
        mtu: 1500,
        vlans: NicVlans::Access(0),
        is_isolated: false,
        is_trusted: false,
        rate_bytes_per_s: None,
    }
}

fn keep_a_connection(kernel: Kernel, updates: u64) -> Result<()> {
    let folder = folder()?;
    let guest = |name: &str, last, tasks: &str| -> Result<Guest> {
        Ok(Guest { nics: vec![nic(last)], ..stock::guest(folder.path(), name, kernel, DRIVERS, tasks)? })
    };
    let server = guest(SERVER, 1, "serve:10.9.0.1:7")?;
    let client = guest(CLIENT, 2, "stream:10.9.0.2:10.9.0.1:9,echo:10.9.0.1:7")?;
    let lan = NetworkConfig { name: "lan".to_owned(), mtu: 1500 };
    let recipe = Recipe { networks: vec![lan], ..Recipe::new().cpus(2).guest(server).guest(client) };
    let mut host = recipe.start()?;
    host.guest_says(CLIENT, "echo 0 ")?;
    for generation in 2..2 + updates {
        let update = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };
        match host.client()?.request_within(UPDATE_LIMIT, update)? {
            ReplyBody::Updated(report) => ensure!(report.generation == generation, "{report:?}"),
            other => bail!("{other:?}"),
        }
        // The line that follows may be of blocks before the update; the second one is not.
        host.guest_says(CLIENT, "echo ")?;
        host.guest_says(CLIENT, "echo ")?;
    }
    for guest in [SERVER, CLIENT] {
        let console = host.seen.console(guest);
        ensure!(!["WRONG", "timed out"].iter().any(|word| console.contains(word)), "{guest}: {console}");
    }
    ports_are_counted(&mut host)?;
    host.powers_off()
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests with a pair of queues for each vCPU.

use anyhow::{Context as _, Result, ensure};
use baton::config::Guest;
use bundle::{NetworkConfig, NicConfig};
use e2e::host::Host;
use e2e::place::Kernel;
use e2e::recipe::{Recipe, folder};
use e2e::stock;

use super::{CLIENT, DRIVERS, LIMIT, SERVER, nic};

const PAIRS: u16 = 2;

/// Each vCPU of a client has a connection, and receives it by its own queue, before an update and behind it.
pub(super) fn each_vcpu_receives_by_its_own() -> Result<()> {
    let mut host = start()?;
    host.limit(LIMIT);
    let before = received(&mut host, &[0; PAIRS as usize])?;
    super::echoes_across_updates(&mut host, [SERVER, CLIENT], 1)?;
    received(&mut host, &before)?;
    host.powers_off()
}

fn start() -> Result<Host> {
    let folder = folder()?;
    let guest = |name: &str, last, tasks: &str| -> Result<Guest> {
        let nics = vec![NicConfig { queue_pairs: PAIRS, ..nic(last) }];
        Ok(Guest { nics, vcpus: PAIRS.into(), ..stock::guest(folder.path(), name, Kernel::Default, DRIVERS, tasks)? })
    };
    let client = "pin:0,echo:10.9.0.2:10.9.0.1:7,pin:1,echo:10.9.0.1:7,queues:500,wait";
    let (server, client) = (guest(SERVER, 1, "serve:10.9.0.1:7")?, guest(CLIENT, 2, client)?);
    let lan = NetworkConfig { name: "lan".to_owned(), mtu: 1500 };
    Recipe { networks: vec![lan], ..Recipe::new().cpus(2).guest(server).guest(client) }.start()
}

/// Waits until each queue of the client has interrupted more often than so.
fn received(host: &mut Host, before: &[u64]) -> Result<Vec<u64>> {
    loop {
        host.guest_prints(CLIENT, " interrupts=[")?;
        host.guest_prints(CLIENT, "]")?;
        let console = host.seen.console(CLIENT);
        let line = console.lines().rfind(|line| line.contains("queues ") && line.contains(']')).unwrap_or_default();
        let counts = interrupts(line).with_context(|| line.to_owned())?;
        if counts.len() == before.len() && counts.iter().zip(before).all(|(now, before)| now > before) {
            let all = format!("rx={PAIRS} tx={PAIRS}");
            ensure!(line.contains(&all), "{line}");
            return Ok(counts);
        }
    }
}

/// The counts in a line `queues NUMBER rx=2 tx=2 interrupts=[7, 9]`.
fn interrupts(line: &str) -> Option<Vec<u64>> {
    let list = line.split_once("interrupts=[")?.1.split_once(']')?.0;
    list.split(", ").filter(|word| !word.is_empty()).map(|word| word.parse().ok()).collect()
}

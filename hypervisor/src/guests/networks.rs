// SPDX-License-Identifier: MIT OR Apache-2.0
//! The networks between guests: the ports where guests' network devices are plugged in, and the way of a frame from one
//! guest's memory to another's.
//!
//! ```text
//! exit: notification ──► the vCPU's turn: take a frame ──► switch ──► each port: receive ──► give it back
//!                        own device locked                 no lock    port and device locked   own device locked
//! ```
//!
//! The vCPU that has notified its device forwards its frames, those of each pair of queues on its own, and pays for it.
//! No lock is taken while a device of its own is locked, and one port at a time: guests that send to each other do not
//! wait for each other. A port's lock is held while the memory of its guest is written. A guest that ends is unplugged
//! under that lock before its memory is given back. A guest that is created or deleted changes the ports of its
//! networks: each sender then gets a reference to the new list, between two turns.

mod announcing;
mod capturing;
pub mod counted;
pub mod listing;
mod port;
mod sending;
mod tap;

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use bundle::{GuestConfig, HostConfig, NicConfig, NicVlans, limits};
use switch::{Mac, Vlans};
use vm::devices::net::{Net, PAIRS_MOST};
use vm::devices::pci::Slot;
use vm::devices::virtio;
use vm::machine::Machine;

use crate::arch::guest_memory::GuestRam;
use crate::guests::forwarding::Run;
use crate::guests::guest::Guest;

use self::port::{Lan, NETWORKS, Plugged};

pub use self::announcing::announce;
pub use self::port::Nic;
pub use self::sending::{linger_until, send};
pub use self::tap::Tap;

/// The device number of a guest's first network device: physical functions are before it.
const FIRST_DEVICE: usize = 20;
/// Functions of a device have numbers of three bits.
const FUNCTIONS_OF_A_DEVICE: usize = 8;
// A port has a sender for each pair of its device's queues.
const _: () = assert!(limits::QUEUE_PAIRS as usize == PAIRS_MOST);

/// Makes the networks of a bundle, without ports.
pub fn create(host: &HostConfig) {
    NETWORKS.call_once(|| host.networks.iter().map(Lan::new).collect());
}

/// Adds the ports of a guest's network devices.
///
/// # Errors
/// Why there can be none. Nothing has changed.
pub fn enter(guest: u32, config: &GuestConfig) -> Result<(), String> {
    for (number, nic) in config.nics.iter().enumerate() {
        let bad = |reason: String| {
            leave(&config.nics[..number]);
            format!("guest {}: network device {}: {reason}", config.name, number + 1)
        };
        let lan = lan(nic).ok_or_else(|| bad("its network is not there".into()))?;
        lan.add(guest, nic, configured(nic)).map_err(|refused| bad(format!("{refused:?}")))?;
    }
    Ok(())
}

/// Removes the ports of network devices whose guest does not run.
pub fn leave(nics: &[NicConfig]) {
    for (lan, nic) in nics.iter().filter_map(|nic| Some((lan(nic)?, nic))) {
        lan.remove(Mac(nic.mac));
    }
}

/// Where the frames of the network of this name can be captured.
pub fn tap(network: &str) -> Option<Arc<Tap>> {
    let lan = NETWORKS.get()?.iter().find(|lan| lan.name == network)?;
    Some(lan.now().tap.clone())
}

fn lan(nic: &NicConfig) -> Option<&'static Lan> {
    NETWORKS.get()?.get(nic.network as usize)
}

fn configured(nic: &NicConfig) -> switch::Port {
    let vlans = match &nic.vlans {
        NicVlans::Access(vlan) => Vlans::Access(*vlan),
        NicVlans::Trunk(vlans) => Vlans::Trunk(vlans.clone()),
    };
    switch::Port { mac: Mac(nic.mac), vlans, is_isolated: nic.is_isolated, is_trusted: nic.is_trusted }
}

/// Puts a guest's network devices on its bus.
///
/// # Errors
/// Why there can be none.
pub fn attach(guest: &Guest, machine: &mut Machine<GuestRam>) -> Result<Vec<Nic>, String> {
    let attach_one = |(number, nic): (usize, &NicConfig)| {
        let bad = |reason: &str| format!("network device {}: {reason}", number + 1);
        let now = lan(nic).ok_or_else(|| bad("its network is not there"))?.now();
        let (port_number, port) = now.with_mac(Mac(nic.mac)).ok_or_else(|| bad("its port is not there"))?;
        let slot = Slot(((FIRST_DEVICE + number) * FUNCTIONS_OF_A_DEVICE) as u8);
        let device = virtio::in_slot(slot, Net::new(Mac(nic.mac), nic.mtu, nic.queue_pairs))
            .map_err(|_| bad("it fits no function"))?;
        let device = machine.bus_mut().attach_function(device).map_err(|_| bad("the guest's bus is full"))?;
        Ok(Nic { port: port.clone(), number: port_number, device })
    };
    guest.config.nics.iter().enumerate().map(attach_one).collect()
}

/// The devices of a run receive from here on.
pub fn plug(run: &Arc<impl Run + 'static>, nics: &[Nic]) {
    for nic in nics {
        *nic.port.plugged.lock() = Some(Plugged { run: run.clone(), device: nic.device.clone() });
    }
}

/// The devices of a run receive nothing any more: no other CPU reaches its memory once this returns.
pub fn unplug(nics: &[Nic]) {
    for nic in nics {
        let unplugged = nic.port.plugged.lock().take();
        // The run may end with this: not while the port is locked.
        drop(unplugged);
    }
}
